#include "temp_tree.h"

#include <sys/stat.h>

std::uint64_t TempTree::directory(const std::string& name) const {
  const auto where = path_ / name;
  std::filesystem::create_directories(where);
  struct stat status{};
  REQUIRE(::stat(where.c_str(), &status) == 0);
  return status.st_ino;
}
