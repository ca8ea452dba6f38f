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

TEST_CASE("Who was served before is served once a second while others take every token") {
  const auto start = RateLimiter::Clock::now();
  const std::chrono::milliseconds interval = GENERATE(10ms, 1000ms, 60'000ms);
  const auto apart = std::max<std::chrono::milliseconds>(interval, 1s);
  RateLimiter limiter({.interval = interval, .burst = 2}, start);
  const auto flood = [&](auto now) {
    while (limiter.take(now)) {
    }
  };
  flood(start);
  CHECK(limiter.take(start, "192.0.2.1"));
  CHECK_FALSE(limiter.take(start, "192.0.2.1"));
  CHECK(limiter.take(start, "192.0.2.2"));
  flood(start + apart - 1ms);
  CHECK_FALSE(limiter.take(start + apart - 1ms, "192.0.2.1"));
  flood(start + apart);
  CHECK(limiter.take(start + apart, "192.0.2.1"));
  SECTION("and what it has of the common tokens is not beside that") {
    const auto later = start + 100 * apart;
    CHECK(limiter.take(later, "192.0.2.1"));
    CHECK(limiter.take(later, "192.0.2.1"));
    CHECK_FALSE(limiter.take(later, "192.0.2.1"));
  }
}

}  // namespace
}  // namespace tacho::web
