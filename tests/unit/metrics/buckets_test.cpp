#include "metrics/buckets.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace tacho::metrics {
namespace {

/// The definition itself: the first slot whose inclusive bound is not exceeded.
std::size_t slot_by_search(std::uint64_t ns) {
  std::size_t slot = 0;
  while (ns > slot_bound_ns(slot)) {
    ++slot;
  }
  return slot;
}

std::vector<std::string> le_values(unsigned per_octave) {
  const BucketLayout layout(per_octave);
  std::vector<std::string> result;
  for (const BucketLayout::Bucket& bucket : layout.buckets()) {
    result.emplace_back(bucket.le());
  }
  return result;
}

TEST_CASE("bounds rise as the header says") {
  CHECK(slot_bound_ns(0) == 1000);
  for (std::size_t octave = 0; octave < TACHO_HISTOGRAM_OCTAVES; ++octave) {
    const std::uint64_t start = std::uint64_t{1000} << octave;
    CHECK(slot_bound_ns(4 * octave + 1) == start + start / 4);
    CHECK(slot_bound_ns(4 * octave + 2) == start + start / 2);
    CHECK(slot_bound_ns(4 * octave + 3) == start + start / 4 * 3);
    CHECK(slot_bound_ns(4 * octave + 4) == 2 * start);
  }
  CHECK(slot_bound_ns(kOverflowSlot - 1) == 67'108'864'000);
  CHECK(slot_bound_ns(kOverflowSlot) == kUnbounded);
}

TEST_CASE("slot_of agrees with the bounds at every edge") {
  CHECK(slot_of(0) == 0);
  CHECK(slot_of(1) == 0);
  for (std::size_t slot = 0; slot < kOverflowSlot; ++slot) {
    const std::uint64_t bound = slot_bound_ns(slot);
    CHECK(slot_of(bound - 1) == slot);
    CHECK(slot_of(bound) == slot);
    CHECK(slot_of(bound + 1) == slot + 1);
  }
  CHECK(slot_of(kUnbounded) == kOverflowSlot);
  CHECK(slot_of(kUnbounded - 1) == kOverflowSlot);
}

TEST_CASE("slot_of agrees with the bounds at random durations of every magnitude") {
  std::mt19937_64 random(20261120);
  std::size_t wrong = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t ns = random() >> (random() % 64);
    wrong += slot_of(ns) == slot_by_search(ns) ? 0U : 1U;
  }
  CHECK(wrong == 0);
}

TEST_CASE("le values are canonical, one per octave by default") {
  const std::vector<std::string> expected = {"1e-06",     "2e-06",     "4e-06",     "8e-06",    "1.6e-05",  "3.2e-05",
                                             "6.4e-05",   "0.000128",  "0.000256",  "0.000512", "0.001024", "0.002048",
                                             "0.004096",  "0.008192",  "0.016384",  "0.032768", "0.065536", "0.131072",
                                             "0.262144",  "0.524288",  "1.048576",  "2.097152", "4.194304", "8.388608",
                                             "16.777216", "33.554432", "67.108864", "+Inf"};
  CHECK(le_values(1) == expected);
  CHECK(BucketLayout().buckets().size() == expected.size());
  CHECK(le_values(3) == expected);
}

TEST_CASE("finer layouts contain the coarser ones and every bucket fits its text") {
  for (const unsigned per_octave : {1U, 2U, 4U}) {
    const BucketLayout layout(per_octave);
    REQUIRE(layout.buckets().size() == 2 + std::size_t{TACHO_HISTOGRAM_OCTAVES} * per_octave);
    CHECK(layout.lines() == layout.buckets().size() + 2);
    for (const BucketLayout::Bucket& bucket : layout.buckets()) {
      REQUIRE(bucket.length <= bucket.text.size());
      CHECK(bucket.tail().ends_with("\"} "));
      if (bucket.last_slot != kOverflowSlot) {
        CHECK(std::stod(std::string(bucket.le())) * 1e9 == Approx(slot_bound_ns(bucket.last_slot)).epsilon(1e-15));
      }
    }
    CHECK(layout.buckets().back().last_slot == kOverflowSlot);
  }
  const std::vector<std::string> fine = le_values(4);
  CHECK(std::vector<std::string>(fine.begin(), fine.begin() + 5) ==
        std::vector<std::string>{"1e-06", "1.25e-06", "1.5e-06", "1.75e-06", "2e-06"});
  CHECK(le_values(2)[1] == "1.5e-06");
}

TEST_CASE("slots of a fine histogram are parts of a coarse one's, and hold what their bounds say") {
  constexpr std::size_t kPerOctave = FineHistogram::kPerOctave;
  CHECK(coarse_slot(0) == 0);
  CHECK(coarse_slot(TACHO_HISTOGRAM_FINE_SLOTS - 1) == kOverflowSlot);
  for (std::size_t slot = 0; slot + 1 < TACHO_HISTOGRAM_FINE_SLOTS; ++slot) {
    const double bound = slot_bound_seconds(slot, kPerOctave) * 1e9;
    const auto longest = static_cast<std::uint64_t>(std::floor(bound + 1e-6 * bound / 1e6));
    CAPTURE(slot, bound);
    CHECK(fine_slot_of(longest) == slot);
    CHECK(fine_slot_of(longest + 1) == slot + 1);
    CHECK(coarse_slot(slot) == slot_of(longest));
  }
  CHECK(std::isinf(slot_bound_seconds(TACHO_HISTOGRAM_FINE_SLOTS - 1, kPerOctave)));
  CHECK(slot_bound_seconds(4, 1) == Approx(16e-6));
}

TEST_CASE("a fine histogram is exposed with all its observations") {
  FineHistogram fine;
  Histogram expected;
  for (std::uint64_t ns = 100; ns < std::uint64_t{1} << 40; ns = ns * 21 / 20) {
    ++fine.slots[fine_slot_of(ns)];
    ++expected.slots[slot_of(ns)];
    fine.sum_ns += ns;
  }
  CHECK(coarse(fine).slots == expected.slots);
  CHECK(coarse(fine).sum_ns == fine.sum_ns);
}

TEST_CASE("quantiles of a narrow distribution are at most 6 % off in a fine histogram") {
  std::mt19937_64 random(11);
  for (double centre = 20e3; centre < 5e9; centre *= 1.07) {
    for (const double width : {0.0, 0.005, 0.02, 0.1}) {
      std::normal_distribution<double> normal(centre, width * centre);
      std::vector<std::uint64_t> durations(2'003);
      std::ranges::generate(durations, [&] { return static_cast<std::uint64_t>(width > 0 ? normal(random) : centre); });
      FineHistogram histogram;
      for (const std::uint64_t ns : durations) {
        ++histogram.slots[fine_slot_of(ns)];
      }
      std::ranges::sort(durations);
      for (const double q : {0.5, 0.99}) {
        const auto exact = static_cast<double>(durations[static_cast<std::size_t>(q * 2'002)]);
        CAPTURE(centre, width, q);
        CHECK(quantile(histogram, q) * 1e9 == Approx(exact).epsilon(0.06));
      }
    }
  }
}

TEST_CASE("quantile interpolates inside a slot") {
  Histogram histogram;
  CHECK(std::isnan(quantile(histogram, 0.5)));
  histogram.slots[slot_of(1'000'000)] = 10;  // (0.896, 1.024] ms
  CHECK(quantile(histogram, 0.5) == Approx(0.96e-3));
  CHECK(quantile(histogram, 1) == Approx(1.024e-3));
  CHECK(quantile(histogram, 0) == Approx(0.896e-3));
  CHECK(quantile(histogram, 7) == Approx(1.024e-3));
  CHECK(std::isnan(quantile(histogram, std::nan(""))));
  histogram.slots[0] = 30;
  CHECK(quantile(histogram, 0.5) == Approx(1e-6 * 20 / 30));
  histogram.slots[kOverflowSlot] = 60;
  CHECK(total(histogram) == 100);
  CHECK(quantile(histogram, 0.4) == Approx(1.024e-3));
  CHECK(quantile(histogram, 0.41) == Approx(67.108864));
}

TEST_CASE("quantile is within a slot of the true one") {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> durations;
  Histogram histogram;
  for (int i = 0; i < 10'007; ++i) {
    durations.push_back(random() >> (34 + random() % 20));
    ++histogram.slots[slot_of(durations.back())];
  }
  std::sort(durations.begin(), durations.end());
  for (const double q : {0.01, 0.25, 0.5, 0.9, 0.99, 0.999}) {
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(durations.size()))) - 1;
    const std::size_t slot = slot_of(durations[rank]);
    CAPTURE(q, durations[rank]);
    CHECK(quantile(histogram, q) * 1e9 <= static_cast<double>(slot_bound_ns(slot)) * (1 + 1e-12));
    CHECK(quantile(histogram, q) * 1e9 >=
          (slot == 0 ? 0.0 : static_cast<double>(slot_bound_ns(slot - 1)) * (1 - 1e-12)));
  }
}

}  // namespace
}  // namespace tacho::metrics
