#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/web_config_file.h"

namespace tacho::web {

/// Where the web configuration and what it names are read: on disk, or from what another process read there.
class Files {
 public:
  Files() = default;
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  virtual ~Files() = default;

  /// What changes with the content; empty: absent. Waits for nobody.
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
