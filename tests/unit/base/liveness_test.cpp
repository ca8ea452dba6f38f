#include "base/liveness.h"

#include <catch2/catch.hpp>

namespace tacho {
namespace {

using std::chrono_literals::operator""s;

struct Fixture {
  Liveness::Clock::time_point now{};
  Liveness liveness{[this] { return now; }};
};

TEST_CASE_METHOD(Fixture, "What takes ten seconds is stuck, and named with its step") {
  CHECK_FALSE(liveness.stuck());
  auto loop = liveness.begin("the main loop");
  loop.now_at("sampling");
  now += 9s;
  CHECK_FALSE(liveness.stuck());
  now += 3s;
  REQUIRE(liveness.stuck());
  CHECK(liveness.stuck()->text() == "the main loop (sampling) is stuck for 12 s");
  loop.now_at("waiting");
  CHECK_FALSE(liveness.stuck());
}

TEST_CASE_METHOD(Fixture, "What has ended is not stuck; the oldest is named") {
  auto loop = liveness.begin("the main loop");
  {
    const auto scrape = liveness.begin("GET /metrics");
    now += 5s;
    loop.now_at("sampling");
    now += 6s;
    CHECK(liveness.stuck()->text() == "GET /metrics is stuck for 11 s");
  }
  CHECK_FALSE(liveness.stuck());
  auto moved = std::move(loop);
  now += 10s;
  CHECK(liveness.stuck());
}

}  // namespace
}  // namespace tacho
