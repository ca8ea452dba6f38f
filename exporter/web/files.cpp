#include "web/files.h"

#include <sys/stat.h>

#include "base/regular_file.h"

namespace tacho::web {
namespace {

class FilesOnDisk final : public Files {
 public:
  [[nodiscard]] std::vector<std::int64_t> state(const std::filesystem::path& path) const override {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) {
      return {};
    }
    return {static_cast<std::int64_t>(status.st_dev),
            static_cast<std::int64_t>(status.st_ino),
            status.st_size,
            status.st_mtim.tv_sec,
            status.st_mtim.tv_nsec,
            status.st_ctim.tv_sec,
            status.st_ctim.tv_nsec};
  }
  [[nodiscard]] Result<std::string> read(const std::filesystem::path& path, std::size_t limit) const override {
    return read_regular_file(path, limit);
  }
};

}  // namespace

const Files& Files::on_disk() {
  static const FilesOnDisk files;
  return files;
}

}  // namespace tacho::web
