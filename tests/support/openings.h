#pragma once

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "base/unique_fd.h"

namespace tacho::test {

/// Tells whether a directory, or anything in it, is opened (inotify(7)).
class Openings {
 public:
  explicit Openings(const std::string& directory) {
    REQUIRE(news_);
    REQUIRE(::inotify_add_watch(news_.get(), directory.c_str(), IN_OPEN) >= 0);
  }

  /// Since it was last asked.
  [[nodiscard]] bool any() const {
    std::array<char, 4096> events{};
    return ::read(news_.get(), events.data(), events.size()) > 0;
  }

 private:
  UniqueFd news_{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
};

}  // namespace tacho::test
