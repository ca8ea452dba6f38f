#include "metrics/moments.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tacho::metrics {
namespace {

Moments of(const std::vector<std::int64_t>& intervals) {
  Moments moments;
  for (const std::int64_t ns : intervals) {
    ++moments.intervals;
    moments.interval_ns += ns;
    moments.square_ns2 += static_cast<Uint128>(static_cast<__int128_t>(ns) * ns);
  }
  return moments;
}

/// Two passes over the intervals, as the textbook has it.
long double naive_variance(const std::vector<std::int64_t>& intervals) {
  long double mean = 0;
  for (const std::int64_t ns : intervals) {
    mean += static_cast<long double>(ns) / static_cast<long double>(intervals.size());
  }
  long double sum = 0;
  for (const std::int64_t ns : intervals) {
    sum += (static_cast<long double>(ns) - mean) * (static_cast<long double>(ns) - mean);
  }
  return sum / static_cast<long double>(intervals.size());
}

TEST_CASE("variance of small examples") {
  CHECK(variance_seconds2(of({})) == 0);
  CHECK(variance_seconds2(of({5})) == 0);
  CHECK(variance_seconds2(of({1'000'000'000, 3'000'000'000})) == Approx(1));
  CHECK(cv2(of({1'000'000'000, 3'000'000'000})) == Approx(0.25));
  CHECK(variance_seconds2(of({1, 2})) == Approx(0.25e-18));
  CHECK(variance_seconds2(of({-3, 5})) == Approx(16e-18));
  CHECK(variance_seconds2(of({-5, -5, -5})) == 0);
  CHECK(variance_seconds2(of({-1, 0, 0, 0, 0, 0, 0, 0, 0, 0})) == Approx(0.09e-18));
  CHECK(cv2(of({-5, 5})) == 0);
  CHECK(cv2(of({-5, -9})) == 0);
  CHECK(cv2(of({})) == 0);
}

TEST_CASE("nothing cancels: a nanosecond of jitter on long intervals") {
  std::vector<std::int64_t> intervals(100'000, 999'999'999);
  CHECK(variance_seconds2(of(intervals)) == 0);
  for (std::size_t i = 0; i < intervals.size(); i += 2) {
    ++intervals[i];
  }
  CHECK(variance_seconds2(of(intervals)) == Approx(0.25e-18).epsilon(1e-12));
}

TEST_CASE("variance and cv2 agree with two passes over random streams") {
  std::mt19937_64 random(4);
  for (const double mean : {30.0, 5e3, 2e6, 4e8}) {
    std::exponential_distribution<double> exponential(1 / mean);
    std::vector<std::int64_t> intervals;
    for (int i = 0; i < 20'011; ++i) {
      const std::int64_t disorder = random() % 50 == 0 ? -40 : 0;
      intervals.push_back(static_cast<std::int64_t>(exponential(random)) + disorder);
    }
    const Moments moments = of(intervals);
    const long double variance = naive_variance(intervals);
    CHECK(variance_seconds2(moments) == Approx(static_cast<double>(variance * 1e-18L)).epsilon(1e-9));
    const long double average =
        static_cast<long double>(moments.interval_ns) / static_cast<long double>(intervals.size());
    CHECK(cv2(moments) == Approx(static_cast<double>(variance / average / average)).epsilon(1e-9));
  }
}

TEST_CASE("shards add up, differences undo it") {
  std::mt19937_64 random(9);
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> second;
  for (int i = 0; i < 101; ++i) {
    first.push_back(static_cast<std::int64_t>(random() % 1'000'000));
    second.push_back(static_cast<std::int64_t>(random() % 1'000'000));
  }
  std::vector<std::int64_t> both = first;
  both.insert(both.end(), second.begin(), second.end());
  Moments sum = of(first);
  sum.operations = 3;
  sum.bytes = 50;
  Moments other = of(second);
  other.operations = 4;
  other.idle_gaps = 1;
  other.idle_gap_ns = 2'000'000'000;
  sum += other;
  CHECK(sum.operations == 7);
  CHECK(sum.bytes == 50);
  CHECK(sum.idle_gaps == 1);
  CHECK(sum.idle_gap_ns == 2'000'000'000);
  CHECK(variance_seconds2(sum) == variance_seconds2(of(both)));
  CHECK(variance_seconds2(sum - of(first)) == variance_seconds2(of(second)));
  CHECK((sum - other).operations == 3);
}

TEST_CASE("any sums give finite results that are not negative") {
  std::mt19937_64 random(10);
  std::size_t wrong = 0;
  const auto sound = [](double x) { return std::isfinite(x) && x >= 0; };
  for (int i = 0; i < 100'000; ++i) {
    Moments moments;
    moments.intervals = random() >> (random() % 64);
    moments.interval_ns = static_cast<std::int64_t>(random()) >> (random() % 64);
    moments.square_ns2 = ((static_cast<Uint128>(random()) << 64) | random()) >> (random() % 128);
    wrong += sound(variance_seconds2(moments)) && sound(cv2(moments)) ? 0U : 1U;
  }
  CHECK(wrong == 0);
  Moments extreme;
  extreme.intervals = 1;
  extreme.interval_ns = std::numeric_limits<std::int64_t>::min();
  CHECK(variance_seconds2(extreme) == 0);
  extreme.square_ns2 = ~Uint128{0};
  CHECK(sound(variance_seconds2(extreme)));
}

TEST_CASE("seconds squared") {
  CHECK(seconds_squared(0) == 0);
  CHECK(seconds_squared(static_cast<Uint128>(1'000'000'000) * 1'000'000'000) == 1);
  CHECK(seconds_squared(1) == Approx(1e-18));
  Uint128 previous = 0;
  for (Uint128 n = 1; n < (static_cast<Uint128>(1) << 126); n += n / 3 + 1) {
    CHECK(seconds_squared(n) >= seconds_squared(previous));
    previous = n;
  }
}

}  // namespace
}  // namespace tacho::metrics
