#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "base/log.h"

namespace {

using namespace std::chrono_literals;
using tacho::RateLimited;

struct Clock {
  RateLimited::Clock::time_point now{100s};

  [[nodiscard]] auto reader() const {
    return [this] { return now; };
  }
};

}  // namespace

TEST_CASE("a message is logged at once, then once per interval with the number of repeats") {
  Clock clock;
  RateLimited limited(10s, clock.reader());
  CHECK(limited.admit("ring", "ring full") == "ring full");
  for (int i = 0; i < 37; ++i) {
    clock.now += 100ms;
    CHECK_FALSE(limited.admit("ring", "ring full"));
  }
  clock.now += 10s;
  CHECK(limited.admit("ring", "ring full") == "ring full (repeated 37 times)");
  CHECK_FALSE(limited.admit("ring", "ring full"));
  clock.now += 10s;
  CHECK(limited.admit("ring", "ring full") == "ring full (repeated 1 time)");
  clock.now += 10s;
  CHECK(limited.admit("ring", "ring full") == "ring full");
}

TEST_CASE("the interval ends exactly after its length") {
  Clock clock;
  RateLimited limited(10s, clock.reader());
  CHECK(limited.admit("key", "x"));
  clock.now += 10s - 1ms;
  CHECK_FALSE(limited.admit("key", "x"));
  clock.now += 1ms;
  CHECK(limited.admit("key", "x") == "x (repeated 1 time)");
}

TEST_CASE("keys do not keep each other quiet, and the latest text is the one logged") {
  Clock clock;
  RateLimited limited(10s, clock.reader());
  CHECK(limited.admit("a", "lost 1"));
  CHECK(limited.admit("b", "lost 1"));
  CHECK_FALSE(limited.admit("a", "lost 2"));
  clock.now += 10s;
  CHECK(limited.admit("a", "lost 3") == "lost 3 (repeated 1 time)");
  CHECK(limited.admit("b", "lost 3") == "lost 3");
}

TEST_CASE("the number of keys is bounded: the one logged longest ago is forgotten") {
  Clock clock;
  RateLimited limited(10s, clock.reader(), 2);
  CHECK(limited.admit("a", "x"));
  clock.now += 1s;
  CHECK(limited.admit("b", "x"));
  clock.now += 1s;
  CHECK(limited.admit("c", "x"));
  CHECK_FALSE(limited.admit("b", "x"));
  CHECK(limited.admit("a", "x"));  // forgotten, so new
}

TEST_CASE("of a message repeated by several threads one comes through") {
  RateLimited limited(std::chrono::hours(1));
  std::atomic<int> admitted{0};
  {
    std::array<std::jthread, 4> threads;
    for (auto& thread : threads) {
      thread = std::jthread([&] {
        for (int i = 0; i < 1000; ++i) {
          admitted += limited.admit("key", "x") ? 1 : 0;
        }
      });
    }
  }
  CHECK(admitted == 1);
}
