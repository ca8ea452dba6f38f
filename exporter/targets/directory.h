#pragma once

#include <filesystem>
#include <vector>

namespace tacho::targets {

/// A directory's entries; none if it cannot be read.
inline std::vector<std::filesystem::path> entries(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    found.push_back(at->path());
  }
  return found;
}

}  // namespace tacho::targets
