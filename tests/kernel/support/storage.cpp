#include "kernel/support/storage.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace tacho::kernel_test {
namespace {

constexpr std::string_view kUpper = "upperdir=";

/// The upper layer of the overlay that a directory lies in, as /proc/self/mountinfo has it; empty if there is none.
std::filesystem::path upper_layer(const std::filesystem::path& directory) {
  const std::string path = std::filesystem::absolute(directory).string();
  std::ifstream mounts("/proc/self/mountinfo");
  std::string line;
  std::string nearest;
  std::filesystem::path upper;
  while (std::getline(mounts, line)) {
    std::istringstream words(line);
    std::string skipped;
    std::string point;
    words >> skipped >> skipped >> skipped >> skipped >> point;
    const bool holds =
        path.starts_with(point) && (point == "/" || path.size() == point.size() || path[point.size()] == '/');
    if (!holds || point.size() < nearest.size()) {
      continue;
    }
    nearest = point;
    const auto begin = line.find(kUpper);
    upper = begin == std::string::npos
                ? ""
                : line.substr(begin + kUpper.size(), line.find(',', begin) - begin - kUpper.size());
  }
  return upper;
}

}  // namespace

bool is_in_memory(const std::filesystem::path& directory) {
  struct statfs where{};
  if (::statfs(directory.c_str(), &where) != 0) {
    return false;
  }
  switch (where.f_type) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
      return true;
    case OVERLAYFS_SUPER_MAGIC: {
      const auto upper = upper_layer(directory);
      return !upper.empty() && upper != directory && is_in_memory(upper);
    }
    default:
      return false;
  }
}

}  // namespace tacho::kernel_test
