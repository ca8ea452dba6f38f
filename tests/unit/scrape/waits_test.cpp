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
  WaitSums sums;
  sums.time_ns = 62'000'000'000;
  sums.requests = 5;
  target.history.push(sums);
  CHECK_FALSE(target.history.periods());
}

TEST_CASE("time that goes back begins anew, parts that do, too") {
  WaitSums sums;
  sums.requests = 100;
  sums.all.requests[0] = 100;
  const auto push = [&sums](WaitHistory& history, std::int64_t seconds) {
    sums.time_ns = seconds * 1'000'000'000;
    history.push(sums);
  };
  WaitHistory back(10s);
  for (const std::int64_t second : {1, 11, 21, 5}) {
    push(back, second);
  }
  CHECK(back.samples() == 3);
  WaitHistory parts(10s);
  push(parts, 1);
  push(parts, 11);
  sums.all.requests[0] = 0;
  push(parts, 21);
  CHECK(parts.samples() == 3);
}

TEST_CASE("an hour takes no more samples than it says, a day no more than an hour") {
  CHECK(36 * sizeof(WaitSums) <= std::size_t{12} << 10);  // README: with the default window
  for (const auto& [window, most] : {std::pair{10s, std::size_t{36}}, {2s, 96}, {3600s, 96}}) {
    CAPTURE(window.count());
    Seconds target(window);
    target.pass(4000 + 2 * static_cast<int>(window.count()), {});
    const std::size_t samples = target.history.samples();
    CHECK(samples <= most);
    target.pass(20'000, {});
    CHECK(target.history.samples() <= samples + 1);
  }
}

TEST_CASE("every window is compared with what was before") {
  for (const auto window : {2s, 10s, 60s, 600s, 1800s, 3600s}) {
    CAPTURE(window.count());
    Seconds target(window);
    target.pass(11'000, {}).pass(static_cast<int>(window.count()), {.parts_ms = {{TACHO_PART_DISK, 9.0}}});
    const auto periods = target.history.periods();
    REQUIRE(periods);
    CHECK_THAT(periods->now.all.parts.at(TACHO_PART_DISK), WithinAbs(0.009, 0.005));
    REQUIRE(periods->five_minutes);
    CHECK(periods->five_minutes->seconds <= 600);
    CHECK_THAT(periods->five_minutes->all.seconds, WithinAbs(0.001, 1e-3));
    REQUIRE(periods->hour);
    CHECK(periods->hour->seconds >= 3600);
  }
}

TEST_CASE("a gap in the samples is neither now nor before") {
  Seconds target;
  target.pass(60, {}).stop(900).pass(1, {});
  CHECK_FALSE(target.history.periods());
  target.pass(14, {});
  const auto periods = target.history.periods();
  REQUIRE(periods);
  CHECK(periods->now.seconds <= 15);
  CHECK_FALSE(periods->five_minutes);
}

TEST_CASE("slow requests are those of as long as it takes to have ten") {
  Seconds many;
  many.pass(400, {.slow = 3});
  CHECK(many.history.periods()->slow.mean.requests >= 30);
  CHECK(many.history.periods()->slow.seconds <= 15);
  Seconds few;
  few.pass(20, {.requests = 99, .slow = 0})
      .pass(1, {.slow = 7})
      .pass(40, {.slow = 0})
      .pass(1, {.slow = 5})
      .pass(10, {.slow = 0});
  CHECK(few.history.periods()->slow.mean.requests == 12);
  Seconds none;
  none.pass(400, {.slow = 0});
  CHECK(none.history.periods()->slow.mean.requests == 0);
}

TEST_CASE("the threshold of slow requests is told if it was the same") {
  Seconds same;
  same.pass(60, {.slow = 5, .threshold_ms = 20});
  CHECK_THAT(same.history.periods()->slow.threshold, WithinAbs(0.02, 1e-12));
  same.pass(5, {.slow = 5, .threshold_ms = 30});
  CHECK(same.history.periods()->slow.threshold == 0);
}

TEST_CASE("the largest part is the first of equals, of all or from one on") {
  std::array<double, TACHO_PARTS> parts{};
  CHECK(tacho::scrape::largest_part(parts) == TACHO_PART_QUEUE);
  parts[TACHO_PART_QUEUE] = 3;
  parts[TACHO_PART_LOCK] = 2;
  CHECK(tacho::scrape::largest_part(parts) == TACHO_PART_QUEUE);
  CHECK(tacho::scrape::largest_part(parts, TACHO_PART_CPU) == TACHO_PART_LOCK);
  parts[TACHO_PART_OTHER] = 4;
  CHECK(tacho::scrape::largest_part(parts) == TACHO_PART_OTHER);
}

TEST_CASE("calls are told by peer, those of a new one from its first") {
  WaitSums older;
  older.calls = {{.slot = 1, .calls = 10, .ns = 10'000'000, .in_line_ns = 0}};
  WaitSums newer = older;
  newer.time_ns = 10'000'000'000;
  newer.requests = 100;
  newer.calls = {{.slot = 1, .calls = 10, .ns = 10'000'000, .in_line_ns = 0},
                 {.slot = 4, .calls = 200, .ns = 400'000'000, .in_line_ns = 100'000'000}};
  const Waits waits = tacho::scrape::between(older, newer);
  REQUIRE(waits.calls.size() == 1);
  CHECK(waits.calls[0].slot == 4);
  CHECK(waits.calls[0].calls == 2);
  CHECK_THAT(waits.calls[0].seconds, WithinAbs(0.004, 1e-12));
  CHECK_THAT(waits.calls[0].in_line, WithinAbs(0.001, 1e-12));
}

TEST_CASE("a period without requests or without time has no means") {
  WaitSums sums;
  sums.time_ns = 5;
  sums.requests = 3;
  const Waits waits = tacho::scrape::between(sums, sums);
  CHECK(waits.seconds == 0);
  CHECK(waits.requests == 0);
  CHECK(waits.all.seconds == 0);
  CHECK(waits.running == 0);
}
