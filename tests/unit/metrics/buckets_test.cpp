#include "metrics/buckets.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "metrics/series.h"

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

std::vector<std::string> le_values(unsigned per_octave, Detail detail = Detail::full) {
  const BucketLayout layout(per_octave);
  std::vector<std::string> result;
  for (const BucketLayout::Bucket& bucket : layout.buckets(detail)) {
    result.emplace_back(bucket.le());
  }
  return result;
}

/// 2^(k/16) s in nanoseconds, by other arithmetic than the tables': 64 bits of mantissa are more than any bound needs.
long double exact_bound_ns(int k) {
  return 1e9L * std::exp2(static_cast<long double>(k) / 16);
}

TEST_CASE("bounds are powers of two, and the roots between them, of a second") {
  constexpr int kFirst = -16 * TACHO_HISTOGRAM_FIRST_OCTAVE;
  for (std::size_t slot = 0; slot < kOverflowSlot; ++slot) {
    CAPTURE(slot);
    CHECK(slot_bound_ns(slot) ==
          static_cast<std::uint64_t>(std::floor(exact_bound_ns(kFirst + 4 * static_cast<int>(slot)))));
  }
  for (std::size_t slot = 0; slot + 1 < TACHO_HISTOGRAM_FINE_SLOTS; ++slot) {
    const long double bound = exact_bound_ns(kFirst + static_cast<int>(slot));
    const auto longest = static_cast<std::uint64_t>(std::floor(bound));
    CAPTURE(slot, longest);
    CHECK(fine_slot_of(longest) == slot);
    CHECK(fine_slot_of(longest + 1) == slot + 1);
    CHECK(slot_bound_seconds(slot, FineHistogram::kPerOctave) ==
          Approx(static_cast<double>(bound / 1e9L)).epsilon(1e-15));
  }
  CHECK(slot_bound_ns(0) == 953);
  CHECK(slot_bound_ns(kOverflowSlot - 1) == 64'000'000'000);
  CHECK(slot_bound_ns(kOverflowSlot) == kUnbounded);
}

TEST_CASE("each 32nd of an octave holds at most one bound, and knows how many are below it") {
  constexpr std::array<std::uint64_t, FineHistogram::kPerOctave + 1> kBounds TACHO_HISTOGRAM_OCTAVE_BOUNDS;
  constexpr std::array<std::uint8_t, 32> kBelow TACHO_HISTOGRAM_BOUNDS_BELOW;
  constexpr std::uint64_t kStart = std::uint64_t{1} << TACHO_HISTOGRAM_BOUNDS_OCTAVE;
  for (std::uint64_t part = 0; part < kBelow.size(); ++part) {
    const std::uint64_t begin = kStart + part * (kStart / kBelow.size());
    const auto below = [&](std::uint64_t x) { return std::ranges::count_if(kBounds, [x](auto b) { return b < x; }); };
    CHECK(kBelow.at(part) == below(begin));
    CHECK(below(begin + kStart / kBelow.size()) - below(begin) <= 1);
  }
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
  const std::vector<std::string> expected = {"9.5367431640625e-07",
                                             "1.9073486328125e-06",
                                             "3.814697265625e-06",
                                             "7.62939453125e-06",
                                             "1.52587890625e-05",
                                             "3.0517578125e-05",
                                             "6.103515625e-05",
                                             "0.0001220703125",
                                             "0.000244140625",
                                             "0.00048828125",
                                             "0.0009765625",
                                             "0.001953125",
                                             "0.00390625",
                                             "0.0078125",
                                             "0.015625",
                                             "0.03125",
                                             "0.0625",
                                             "0.125",
                                             "0.25",
                                             "0.5",
                                             "1.0",
                                             "2.0",
                                             "4.0",
                                             "8.0",
                                             "16.0",
                                             "32.0",
                                             "64.0",
                                             "+Inf"};
  CHECK(le_values(1) == expected);
  CHECK(BucketLayout().buckets().size() == expected.size());
  CHECK(le_values(3) == expected);
}

TEST_CASE("without a number, a family has as many buckets as its detail says") {
  CHECK(le_values(0) == le_values(1));
  CHECK(le_values(0, Detail::coarse) == std::vector<std::string>{"1.52587890625e-05", "6.103515625e-05",
                                                                 "0.000244140625", "0.0009765625", "0.00390625",
                                                                 "0.015625", "0.0625", "0.25", "1.0", "4.0", "+Inf"});
  CHECK(le_values(0, Detail::mean) == std::vector<std::string>{"+Inf"});
  CHECK(BucketLayout(0).lines(Detail::mean) == 3);
}

TEST_CASE("a number of buckets is that of all families") {
  for (const unsigned per_octave : {1U, 2U, 4U}) {
    CHECK(le_values(per_octave, Detail::coarse) == le_values(per_octave));
    CHECK(le_values(per_octave, Detail::mean) == le_values(per_octave));
  }
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
        CHECK(std::stod(std::string(bucket.le())) == slot_bound_seconds(bucket.last_slot, Histogram::kPerOctave));
      }
    }
    CHECK(layout.buckets().back().last_slot == kOverflowSlot);
  }
  const std::vector<std::string> fine = le_values(4);
  CHECK(std::vector<std::string>(fine.begin(), fine.begin() + 5) ==
        std::vector<std::string>{"9.5367431640625e-07", "1.1341162824656687e-06", "1.3486991523486091e-06",
                                 "1.6038826279711046e-06", "1.9073486328125e-06"});
  CHECK(le_values(2)[1] == le_values(4)[2]);
}

TEST_CASE("slots of a fine histogram are parts of a coarse one's, and hold what their bounds say") {
  constexpr std::size_t kPerOctave = FineHistogram::kPerOctave;
  CHECK(coarse_slot(0) == 0);
  CHECK(coarse_slot(TACHO_HISTOGRAM_FINE_SLOTS - 1) == kOverflowSlot);
  for (std::size_t slot = 0; slot + 1 < TACHO_HISTOGRAM_FINE_SLOTS; ++slot) {
    const double bound = slot_bound_seconds(slot, kPerOctave);
    CAPTURE(slot, bound);
    CHECK(bound <= slot_bound_seconds(coarse_slot(slot), Histogram::kPerOctave));
    CHECK((slot == 0 || bound > slot_bound_seconds(coarse_slot(slot) - 1, Histogram::kPerOctave)));
  }
  CHECK(std::isinf(slot_bound_seconds(TACHO_HISTOGRAM_FINE_SLOTS - 1, kPerOctave)));
  CHECK(slot_bound_seconds(4, 1) == 0x1p-16);
}

TEST_CASE("a fine histogram is exposed with all its observations") {
  FineHistogram fine;
  Histogram expected;
  for (std::uint64_t ns = 100; ns < std::uint64_t{1} << 40; ns = ns * 21 / 20) {
    ++fine.slots[fine_slot_of(ns)];
    ++expected.slots[slot_of(ns)];
    fine.sum_ns += ns;
  }
  expected.sum_ns = fine.sum_ns;
  constexpr std::array<Family, 1> kFine{{{"t_seconds", Type::histogram, "seconds", "h", "", {}, true}}};
  constexpr std::array<Family, 1> kCoarse{{{"t_seconds", Type::histogram, "seconds", "h", "", {}}}};
  for (const unsigned per_octave : {1U, 2U, 4U}) {
    const BucketLayout layout(per_octave);
    std::string of_fine;
    std::string of_coarse;
    TargetSeries(kFine, Labels{{"a", "b"}}, layout)
        .append(of_fine, 0, {.values = {}, .histograms = {}, .dynamic = {}, .fine = {fine}, .exemplars = {}});
    TargetSeries(kCoarse, Labels{{"a", "b"}}, layout)
        .append(of_coarse, 0, {.values = {}, .histograms = {expected}, .dynamic = {}, .fine = {}, .exemplars = {}});
    CHECK(of_fine == of_coarse);
  }
}

TEST_CASE("quantiles of a narrow distribution are at most 4.5 % off in a fine histogram") {
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
        CHECK(quantile(histogram, q) * 1e9 == Approx(exact).epsilon(0.045));
      }
    }
  }
}

TEST_CASE("quantile interpolates inside a slot") {
  Histogram histogram;
  CHECK(std::isnan(quantile(histogram, 0.5)));
  histogram.slots[slot_of(900'000)] = 10;
  const double high = 0x1p-10;
  const double low = high * std::exp2(-0.25);
  CHECK(quantile(histogram, 0.5) == Approx((low + high) / 2));
  CHECK(quantile(histogram, 1) == Approx(high));
  CHECK(quantile(histogram, 0) == Approx(low));
  CHECK(quantile(histogram, 7) == Approx(high));
  CHECK(std::isnan(quantile(histogram, std::nan(""))));
  histogram.slots[0] = 30;
  CHECK(quantile(histogram, 0.5) == Approx(0x1p-20 * 20 / 30));
  histogram.slots[kOverflowSlot] = 60;
  CHECK(total(histogram) == 100);
  CHECK(quantile(histogram, 0.4) == Approx(high));
  CHECK(quantile(histogram, 0.41) == 64);
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
    CHECK(quantile(histogram, q) <= slot_bound_seconds(slot, Histogram::kPerOctave) * (1 + 1e-12));
    CHECK(quantile(histogram, q) >=
          (slot == 0 ? 0.0 : slot_bound_seconds(slot - 1, Histogram::kPerOctave) * (1 - 1e-12)));
  }
}

}  // namespace
}  // namespace tacho::metrics
