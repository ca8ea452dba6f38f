#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

/// A directory of its own with whatever a test puts there, gone at the end of the test.
class TempTree {
 public:
  TempTree() {
    std::string name = (std::filesystem::temp_directory_path() / "tacho-targets-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;
  ~TempTree() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string path() const { return path_.string(); }

  /// Makes a directory below, its parents too. @return its inode number, which would be a cgroup's id
  [[nodiscard]] std::uint64_t directory(const std::string& name) const;

  /// Writes a file below, in a directory that is made if needed. @return its path
  [[nodiscard]] std::string file(const std::string& name, const std::string& content) const {
    const auto where = path_ / name;
    std::filesystem::create_directories(where.parent_path());
    std::ofstream(where, std::ios::binary) << content;
    return where.string();
  }

  void link(const std::string& name, const std::string& target) const {
    const auto where = path_ / name;
    std::filesystem::create_directories(where.parent_path());
    std::filesystem::create_symlink(target, where);
  }

 private:
  std::filesystem::path path_;
};
