#include "scrape/waits.h"

#include <catch2/catch.hpp>

#include "waits_samples.h"

using namespace std::chrono_literals;
using Catch::Matchers::WithinAbs;
using tacho::scrape::Seconds;
using tacho::scrape::WaitHistory;
using tacho::scrape::Waits;
using tacho::scrape::WaitSums;

TEST_CASE("what requests wait for is known after a window") {
  Seconds target;
  target.pass(9, {});
  CHECK_FALSE(target.history.periods());
  target.pass(1, {});
  const auto periods = target.history.periods();
  REQUIRE(periods);
  CHECK(periods->now.requests == 1000);
  CHECK(periods->now.seconds == 10);
  CHECK(periods->now.all.requests == 1000);
  CHECK_THAT(periods->now.all.seconds, WithinAbs(0.001, 1e-9));
  CHECK_THAT(periods->now.running, WithinAbs(0.2, 1e-6));
  CHECK_FALSE(periods->five_minutes);
}

TEST_CASE("before is told from now") {
  Seconds target;
  target.pass(60, {}).pass(15, {.parts_ms = {{TACHO_PART_LOCK, 4.0}}, .slow_ms = {}});
  const auto periods = target.history.periods();
  REQUIRE(periods);
  CHECK_THAT(periods->now.all.parts.at(TACHO_PART_LOCK), WithinAbs(0.004, 1e-9));
  CHECK(periods->now.seconds <= 15);
  REQUIRE(periods->five_minutes);
  CHECK_THAT(periods->five_minutes->all.parts.at(TACHO_PART_CPU), WithinAbs(0.001, 2e-4));
  CHECK_FALSE(periods->hour);
}

TEST_CASE("an hour is kept, the five minutes before now apart from it") {
  Seconds target;
  target.pass(3600, {.parts_ms = {{TACHO_PART_CPU, 1.0}}})
      .pass(300, {.parts_ms = {{TACHO_PART_CPU, 2.0}}})
      .pass(20, {.parts_ms = {{TACHO_PART_CPU, 8.0}}});
  const auto periods = target.history.periods();
  REQUIRE(periods);
  CHECK_THAT(periods->now.all.seconds, WithinAbs(0.008, 1e-9));
  REQUIRE(periods->five_minutes);
  CHECK_THAT(periods->five_minutes->all.seconds, WithinAbs(0.002, 2e-4));
  CHECK(periods->five_minutes->seconds >= 300);
  CHECK(periods->five_minutes->seconds <= 360);
  REQUIRE(periods->hour);
  CHECK(periods->hour->seconds >= 3600);
  CHECK(periods->hour->seconds <= 3900);
  CHECK_THAT(periods->hour->all.seconds, WithinAbs(0.0011, 1e-4));
}

TEST_CASE("with few requests now is a minute") {
  Seconds target;
  target.pass(120, {.requests = 2});
  const auto periods = target.history.periods();
  REQUIRE(periods);
  CHECK(periods->now.requests >= 120);
  CHECK(periods->now.seconds <= 65);
}

TEST_CASE("another window takes effect, and what is known stays") {
  Seconds target;
  target.pass(60, {});
  target.history.set_window(3s);
  target.pass(6, {.parts_ms = {{TACHO_PART_DISK, 9.0}}});
  const auto periods = target.history.periods();
  REQUIRE(periods);
  CHECK(periods->now.seconds <= 5);
  CHECK_THAT(periods->now.all.parts.at(TACHO_PART_DISK), WithinAbs(0.009, 1e-9));
  REQUIRE(periods->five_minutes);
  CHECK(periods->five_minutes->seconds >= 50);
}

TEST_CASE("a counter that goes back begins anew") {
  Seconds target;
  target.pass(60, {});
  target.history.push({.time_ns = 62'000'000'000, .requests = 5, .all = {}, .slow = {}, .calls = {}});
  CHECK_FALSE(target.history.periods());
}

TEST_CASE("calls are told by peer, those of a new one from its first") {
  WaitSums older{
      .time_ns = 0, .requests = 0, .all = {}, .slow = {}, .calls = {{.slot = 1, .calls = 10, .ns = 10'000'000}}};
  WaitSums newer = older;
  newer.time_ns = 10'000'000'000;
  newer.requests = 100;
  newer.calls = {{.slot = 1, .calls = 10, .ns = 10'000'000}, {.slot = 4, .calls = 200, .ns = 400'000'000}};
  const Waits waits = tacho::scrape::between(older, newer);
  REQUIRE(waits.calls.size() == 1);
  CHECK(waits.calls[0].slot == 4);
  CHECK(waits.calls[0].calls == 2);
  CHECK_THAT(waits.calls[0].seconds, WithinAbs(0.004, 1e-12));
}

TEST_CASE("a period without requests or without time has no means") {
  const WaitSums sums{.time_ns = 5, .requests = 3, .all = {}, .slow = {}, .calls = {}};
  const Waits waits = tacho::scrape::between(sums, sums);
  CHECK(waits.seconds == 0);
  CHECK(waits.requests == 0);
  CHECK(waits.all.seconds == 0);
  CHECK(waits.running == 0);
}
