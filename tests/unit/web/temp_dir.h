#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace tacho::web::test {

/// A directory of its own, gone at the end of the test.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "tacho-web-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

  /// Writes a file by renaming a finished one over it, as programs that rotate certificates do.
  std::filesystem::path write(std::string_view name, std::string_view content) const {
    const auto target = path_ / name;
    const auto part = path_ / (std::string(name) + ".part");
    std::ofstream(part, std::ios::binary) << content;
    std::filesystem::rename(part, target);
    return target;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace tacho::web::test
