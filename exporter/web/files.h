#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/web_config_file.h"

namespace tacho::web {

/// The source of the web configuration and the files that it names: the disk, or data that another process read there.
class Files {
 public:
  Files() = default;
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  virtual ~Files() = default;

  /// A value that changes with the content; empty: absent. Never waits.
  [[nodiscard]] virtual std::vector<std::int64_t> state(const std::filesystem::path& path) const = 0;
  /// As read_regular_file().
  [[nodiscard]] virtual Result<std::string> read(const std::filesystem::path& path, std::size_t limit) const = 0;

  /// read() as a function; this must outlive it.
  [[nodiscard]] config::ReadFile reader() const {
    return [this](const std::filesystem::path& path, std::size_t limit) { return read(path, limit); };
  }

  static const Files& on_disk();
};

}  // namespace tacho::web
