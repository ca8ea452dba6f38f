#include "config/suggest.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>

using tacho::config::nearest;

namespace {
constexpr std::array<std::string_view, 5> kWords{"window", "targets", "limits", "poll", "pod"};
}

TEST_CASE("the nearest word is the one with the fewest letters wrong") {
  CHECK(nearest("windw", kWords) == "window");
  CHECK(nearest("wnidow", kWords) == "window");  // two letters swapped count as one
  CHECK(nearest("target", kWords) == "targets");
  CHECK(nearest("Limits", kWords) == "limits");
  CHECK(nearest("pol", kWords) == "poll");
  CHECK(nearest("window", kWords) == "window");
}

TEST_CASE("far words are no suggestion") {
  CHECK(nearest("histogram", kWords).empty());
  CHECK(nearest("xyz", kWords).empty());
  CHECK(nearest("", kWords).empty());
  CHECK(nearest("window", {}).empty());
  CHECK(nearest(std::string(100'000, 'w'), kWords).empty());
}
