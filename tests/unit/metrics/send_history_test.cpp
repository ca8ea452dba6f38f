#include "metrics/send_history.h"

#include <catch2/catch.hpp>
#include <map>

namespace tacho::metrics {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

SendPoint point(std::int64_t time_ns, std::uint64_t sends) {
  SendPoint result;
  result.time_ns = time_ns;
  result.sends = sends;
  return result;
}

TEST_CASE("a point from counters") {
  Moments send;
  send.intervals = 10;
  send.idle_gaps = 2;
  send.interval_ns = 5;
  send.idle_gap_ns = 7;
  const SendPoint made(3, send);
  CHECK(made.time_ns == 3);
  CHECK(made.sends == 12);
  CHECK(made.span_ns == 12);
}

TEST_CASE("an hour and more of points, pushed at any rate, stays small and finds the right age") {
  for (const std::int64_t step : {kSecond / 100, kSecond / 2, kSecond, 7 * kSecond, 100 * kSecond}) {
    SendHistory history;
    std::size_t largest = 0;
    // One send a millisecond.
    for (std::int64_t t = 0; t < 5000 * kSecond; t += step) {
      const SendPoint now = point(t, static_cast<std::uint64_t>(t / 1'000'000));
      history.push(now);
      largest = std::max(largest, history.size());
      if (t % (100 * kSecond) != 0) {
        continue;
      }
      for (const std::int64_t age : {2, 10, 60, 600, 3000}) {
        const SendPoint found = history.before(now, static_cast<std::uint64_t>(age) * 1000);
        if (t < age * kSecond) {
          CHECK(found.time_ns == 0);
        } else {
          CAPTURE(step, t, age);
          CHECK(t - found.time_ns >= age * kSecond);
          CHECK(t - found.time_ns <= age * kSecond * 10 / 8 + std::max(step, kSecond));
        }
      }
    }
    CHECK(largest < SendHistory::kCapacity);  // nothing was cut off
    CHECK(history.memory() <= 3072);
  }
}

TEST_CASE("nothing older than an hour is found") {
  SendHistory history;
  const SendPoint late = point(4000 * kSecond, 5);
  CHECK(history.before(late, 1).time_ns == late.time_ns);
  history.push(point(0, 0));
  history.push(point(400 * kSecond, 3));
  history.push(late);
  CHECK(history.before(late, 2).time_ns == 400 * kSecond);
  CHECK(history.before(late, 5).time_ns == 400 * kSecond);
  history.push(point(4001 * kSecond, 6));
  CHECK(history.before(point(4002 * kSecond, 7), 2).time_ns == late.time_ns);
  history.clear();
  CHECK(history.size() == 0);
}

}  // namespace
}  // namespace tacho::metrics
