#include "base/regular_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/openings.h"

namespace tacho {
namespace {

using test::Openings;

class Folder {
 public:
  Folder() { REQUIRE(::mkdtemp(path_.data()) != nullptr); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string operator/(const char* name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "tacho-base-XXXXXX").string();
};

TEST_CASE("A regular file is read up to a limit, over a link where that is permitted") {
  const Folder folder;
  std::ofstream(folder / "file") << "text";
  std::filesystem::create_symlink(folder / "file", folder / "link");
  const Openings openings(folder.path());
  CHECK(read_regular_file(folder / "file", 100) == "text");
  CHECK(openings.any());
  CHECK(read_regular_file(folder / "file", 2) == "tex");
  CHECK(read_regular_file(folder / "link", 100) == "text");
  CHECK(read_regular_file(folder / "file", 100, Links::refuse) == "text");
  const auto refused = read_regular_file(folder / "link", 100, Links::refuse);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == EINVAL);
  const auto absent = read_regular_file(folder / "none", 100);
  REQUIRE_FALSE(absent);
  CHECK(absent.error().code == ENOENT);
}

TEST_CASE("What is no regular file is not even opened") {
  const Folder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_directory(folder / "folder");
  std::filesystem::create_symlink(folder / "pipe", folder / "link");
  const Openings openings(folder.path());
  for (const char* name : {"pipe", "link", "folder"}) {
    CAPTURE(name);
    const auto text = read_regular_file(folder / name, 100);
    REQUIRE_FALSE(text);
    CHECK(text.error().code == (std::string_view(name) == "folder" ? EISDIR : EINVAL));
    CHECK_FALSE(openings.any());
  }
  CHECK_FALSE(read_regular_file("/dev/null", 100));
  CHECK_FALSE(read_regular_file("/dev/zero", 100));
}

}  // namespace
}  // namespace tacho
