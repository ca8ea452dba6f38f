#include "process/pulse.h"

#include <catch2/catch.hpp>

using tacho::process::Pulse;
using namespace std::chrono_literals;

namespace {

constexpr Pulse::Clock::time_point kStart{1h};

}  // namespace

TEST_CASE("who gives a sign each second is never silent") {
  Pulse pulse;
  pulse.reset(kStart);
  for (std::uint64_t second = 1; second < 100; ++second) {
    CHECK_FALSE(pulse.is_silent(second, kStart + std::chrono::seconds(second)));
  }
}

TEST_CASE("who gives none is silent after fifteen seconds, and no longer with the next") {
  Pulse pulse;
  pulse.reset(kStart);
  int looks = 0;
  while (!pulse.is_silent(0, kStart + 100ms * looks)) {
    ++looks;
  }
  CHECK(looks == 150);
  CHECK(pulse.is_silent(0, kStart + 16s));
  CHECK_FALSE(pulse.is_silent(1, kStart + 17s));
  CHECK_FALSE(pulse.is_silent(1, kStart + 18s));
  SECTION("nor is who takes the place") {
    for (int second = 19; second < 40; ++second) {
      pulse.is_silent(1, kStart + std::chrono::seconds(second));
    }
    REQUIRE(pulse.is_silent(1, kStart + 40s));
    pulse.reset(kStart + 40s);
    CHECK_FALSE(pulse.is_silent(1, kStart + 41s));
  }
}

TEST_CASE("while nobody looked, nobody was silent") {
  Pulse pulse;
  pulse.reset(kStart);
  CHECK_FALSE(pulse.is_silent(0, kStart + 1h));
}
