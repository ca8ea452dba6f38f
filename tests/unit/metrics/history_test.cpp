#include "metrics/history.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

using namespace tacho::metrics;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// A target that is pushed once a second.
struct Target {
  History history;
  HistorySample sample;
  std::uint64_t tick = 100;

  Target() { history.push(tick, sample); }

  /// A second in which `count` requests took `ns` each.
  void second(std::uint64_t count, std::uint64_t ns = 1'000'000) {
    sample.time_ns += kSecond;
    sample.duration.slots[fine_slot_of(ns)] += count;
    sample.duration.sum_ns += count * ns;
    sample.queue_ns += count * ns / 4;
    history.push(++tick, sample);
  }
};

}  // namespace

TEST_CASE("without requests there is nothing to tell, and nothing is kept") {
  Target target;
  for (int i = 0; i < 400; ++i) {
    target.second(0);
  }
  CHECK(target.history.recent().rate == 0);
  CHECK(std::isnan(target.history.recent().p99));
  CHECK(std::isnan(target.history.recent().queue_share));
  CHECK(target.history.points(0).empty());
  CHECK(target.history.columns(0).empty());
  CHECK(target.history.memory() == 0);
  CHECK(History{}.recent().rate == 0);
}

TEST_CASE("requests take a bounded amount of memory") {
  Target target;
  for (int i = 0; i < 10; ++i) {
    target.second(1);
  }
  const std::size_t memory = target.history.memory();
  for (int i = 0; i < 1000; ++i) {
    target.second(7);
  }
  CHECK(target.history.memory() == memory);
  CHECK(memory + sizeof(History) < 13 * 1024);
}

TEST_CASE("recent values are of the last ten seconds") {
  Target target;
  target.second(1000, 64'000'000);
  for (int i = 0; i < 9; ++i) {
    target.second(100);
  }
  CHECK(target.history.recent().rate == Approx(190));
  CHECK(target.history.recent_rate() == Approx(190));
  CHECK(target.history.recent().p50 == Approx(64e-3).epsilon(0.06));
  CHECK(target.history.recent().queue_share == Approx(0.25));
  target.second(100);
  CHECK(target.history.recent().rate == Approx(100));
  CHECK(target.history.recent().p99 == Approx(1e-3).epsilon(0.06));
  CHECK(total(target.history.recent_durations()) == 1000);
}

TEST_CASE("before there are ten seconds, recent values are of those that there are") {
  Target target;
  target.second(30);
  target.second(50);
  CHECK(target.history.recent().rate == Approx(40));
}

TEST_CASE("points continue where the reader was, and go back five minutes") {
  Target target;
  target.second(0);
  for (int i = 1; i <= 500; ++i) {
    target.second(static_cast<std::uint64_t>(i));
  }
  const auto all = target.history.points(0);
  REQUIRE(all.size() == History::kPoints);
  CHECK(all.front().rate == 201);
  CHECK(all.back().rate == 500);
  CHECK(all.back().p50 == Approx(1e-3).epsilon(0.2));
  CHECK(all.back().queue_share == Approx(0.25).margin(0.002));
  CHECK(std::isnan(all.back().idle_share));
  const auto news = target.history.points(target.tick - 2);
  REQUIRE(news.size() == 2);
  CHECK(news.front().rate == 499);
  CHECK(target.history.points(target.tick).empty());
  CHECK(target.history.points(target.tick + 1000).empty());
  CHECK(target.history.last().rate == 500);
}

TEST_CASE("history begins with the first request") {
  Target target;
  for (int i = 0; i < 7; ++i) {
    target.second(0);
  }
  target.second(3);
  target.second(0);
  REQUIRE(target.history.points(0).size() == 2);
  CHECK(target.history.points(0).front().rate == 3);
  CHECK(std::isnan(target.history.points(0).back().p50));
}

TEST_CASE("durations of points are right within 4 %") {
  for (const double ns : {1e3, 3.7e4, 1e6, 8.1e7, 2e9, 6.5e10}) {
    Target target;
    target.second(1000, static_cast<std::uint64_t>(ns));
    const double exact = quantile(target.sample.duration, 0.99);
    CHECK(target.history.last().p99 == Approx(exact).epsilon(0.04));
  }
}

TEST_CASE("who knows of an earlier tick gets what was known then, tick by tick") {
  Target target;  // tick 100 is the first of a column
  target.second(0);
  std::vector<std::size_t> points;
  std::vector<std::size_t> columns;
  for (int i = 0; i < 12; ++i) {
    target.second(10);
    points.push_back(target.history.points(0).size());
    columns.push_back(target.history.columns(0).size());
  }
  const std::uint64_t first = 102;
  for (std::size_t i = 0; i < points.size(); ++i) {
    CHECK(target.history.points(0, first + i).size() == points[i]);
    CHECK(target.history.columns(0, first + i).size() == columns[i]);
  }
  CHECK(target.history.points(first + 3, first + 5).size() == 2);
  CHECK(target.history.columns(0, 104).back()[11] == Approx(30).epsilon(0.06));
  CHECK(target.history.points(0, first - 1).empty());
  CHECK(target.history.columns(0, first - 1).empty());
}

TEST_CASE("idleness is a share of the threads' time") {
  Target target;
  target.sample.threads = 4;
  for (int i = 0; i < 3; ++i) {
    target.sample.idle_ns += kSecond;
    target.second(1);
  }
  CHECK(target.history.recent().idle_share == Approx(0.25));
  CHECK(target.history.last().idle_share == Approx(0.25).margin(0.002));
  target.sample.idle_ns += 100 * kSecond;
  target.second(1);
  CHECK(target.history.last().idle_share == 1);
}

TEST_CASE("columns count requests by octave, five seconds each") {
  Target target;  // tick 100 is the first of a column
  for (int i = 0; i < 9; ++i) {
    target.second(10, 3000);
  }
  target.second(1, 200'000'000'000);
  // Ticks 101 … 104, 105 … 109, and 110.
  const auto columns = target.history.columns(0);
  REQUIRE(columns.size() == 3);
  CHECK(columns[0][2] == Approx(40).epsilon(0.06));
  CHECK(columns[1][2] == Approx(50).epsilon(0.06));
  CHECK(columns[2][2] == 0);
  CHECK(columns[2][kHeatRows - 1] == 1);
  CHECK(target.history.columns(target.tick).size() == 1);
  CHECK(target.history.columns(target.tick - 1).size() == 2);
  for (int i = 0; i < 1000; ++i) {
    target.second(1'000'000);
  }
  const auto full = target.history.columns(0);
  REQUIRE(full.size() == History::kColumns);
  CHECK(full.front()[11] == Approx(5e6).epsilon(0.05));
}

TEST_CASE("a small number in a column is exact") {
  for (std::uint32_t count = 0; count < 8; ++count) {
    Target target;
    for (int i = 0; i < 4; ++i) {
      target.second(i == 0 ? count : 0);
    }
    target.second(1);
    if (count > 0) {
      CHECK(target.history.columns(0)[0][11] == count);
    }
  }
}

TEST_CASE("a counter or clock that stands still or falls gives no nonsense") {
  Target target;
  target.second(5);
  target.sample.queue_ns = 0;
  target.sample.idle_ns = 0;
  target.second(5);
  CHECK(target.history.last().queue_share == 0);
  target.history.push(++target.tick, target.sample);
  CHECK(target.history.last().rate == 0);
}

TEST_CASE("seconds without a sample share what happened meanwhile") {
  Target target;
  target.second(100);
  target.second(100);
  // Stopped for a minute, in which a client went on.
  target.sample.time_ns += 59 * kSecond;
  target.tick += 59;
  target.second(6000);
  const auto points = target.history.points(0);
  REQUIRE(points.size() == 62);
  for (std::size_t i = 0; i < points.size(); ++i) {
    CAPTURE(i);
    CHECK(points[i].rate == Approx(100));
    CHECK(points[i].p50 == Approx(1e-3).epsilon(0.06));
    CHECK(points[i].queue_share == Approx(0.25).margin(0.01));
  }
  CHECK(target.history.recent().rate == Approx(100));
  CHECK(total(target.history.recent_durations()) == 1000);
  CHECK(target.history.columns(0).size() == 13);
  target.second(100);
  CHECK(target.history.last().rate == Approx(100));
}

TEST_CASE("after hours without a sample the last five minutes are shown") {
  Target target;
  target.second(100);
  target.sample.time_ns += 9999 * kSecond;
  target.tick += 9999;
  target.second(1'000'000);
  const auto points = target.history.points(0);
  REQUIRE(points.size() == History::kPoints);
  CHECK(points.front().rate == Approx(100).epsilon(0.02));
  CHECK(points.back().rate == Approx(100).epsilon(0.02));
  REQUIRE(target.history.columns(0).size() == History::kColumns);
  CHECK(target.history.columns(0).front()[11] == Approx(500).epsilon(0.06));
}
