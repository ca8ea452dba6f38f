#include "web/rate_limiter.h"

#include <catch2/catch.hpp>

namespace tacho::web {
namespace {

using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

TEST_CASE("A burst passes at once, then one request an interval") {
  const auto start = RateLimiter::Clock::now();
  RateLimiter limiter({.interval = 100ms, .burst = 3}, start);
  for (int i = 0; i < 3; ++i) {
    CHECK(limiter.take(start));
  }
  CHECK_FALSE(limiter.take(start));
  CHECK_FALSE(limiter.take(start + 99ms));
  CHECK(limiter.take(start + 101ms));
  CHECK_FALSE(limiter.take(start + 102ms));
  SECTION("no more than the burst is saved up") {
    int passed = 0;
    while (limiter.take(start + 100s)) {
      ++passed;
    }
    CHECK(passed == 3);
  }
}

}  // namespace
}  // namespace tacho::web
