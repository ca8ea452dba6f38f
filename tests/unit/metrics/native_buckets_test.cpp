#include "metrics/native_buckets.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <random>

#include "metrics/buckets.h"

namespace tacho::metrics {
namespace {

/// Counts by index of the bucket, empty ones left out, as a reader of the exposition adds them up.
std::map<int, std::uint64_t> expand(const NativeBuckets& native) {
  std::map<int, std::uint64_t> found;
  std::size_t next = 0;
  std::int64_t count = 0;
  int index = 0;
  for (const NativeBuckets::Span& span : native.spans) {
    index += span.offset;
    for (std::uint32_t i = 0; i < span.length; ++i, ++index) {
      count += native.deltas.at(next++);
      REQUIRE(count >= 0);
      if (count > 0) {
        found[index] = static_cast<std::uint64_t>(count);
      }
    }
  }
  CHECK(next == native.deltas.size());
  return found;
}

template <class Histogram>
void check(const Histogram& histogram) {
  NativeBuckets native;
  native.assign(histogram);
  const auto found = expand(native);
  std::size_t filled = 0;
  for (std::size_t slot = 1; slot < histogram.slots.size(); ++slot) {
    const int index = static_cast<int>(slot) - TACHO_HISTOGRAM_FIRST_OCTAVE * static_cast<int>(Histogram::kPerOctave);
    const auto bucket = found.find(index);
    CHECK((bucket == found.end() ? 0 : bucket->second) == histogram.slots[slot]);
    filled += histogram.slots[slot] > 0 ? 1U : 0U;
  }
  CHECK(filled == found.size());
  for (std::size_t i = 1; i < native.spans.size(); ++i) {
    CHECK(native.spans[i].offset > 2);
  }
}

TEST_CASE("bounds of native buckets are those of the slots") {
  const auto check_bounds = []<std::size_t PerOctave>(const SlotHistogram<PerOctave>& histogram) {
    CHECK(slot_bound_seconds(0, PerOctave) == kZeroThreshold);
    for (std::size_t slot = 1; slot + 1 < histogram.slots.size(); ++slot) {
      SlotHistogram<PerOctave> one;
      one.slots[slot] = 7;
      NativeBuckets native;
      native.assign(one);
      REQUIRE(native.spans.size() == 1);
      REQUIRE(native.deltas == std::vector<std::int64_t>{7});
      const double bound = std::exp2(native.spans[0].offset * std::exp2(-kNativeSchema<PerOctave>));
      CHECK(slot_bound_seconds(slot, PerOctave) == Approx(bound).epsilon(1e-15));
    }
  };
  check_bounds(Histogram{});
  check_bounds(FineHistogram{});
}

TEST_CASE("nothing observed has no buckets; what is beyond the last bound is in the next") {
  NativeBuckets native;
  native.assign(Histogram{});
  CHECK(native.spans.empty());
  CHECK(native.deltas.empty());
  Histogram histogram;
  histogram.slots[kOverflowSlot] = 3;
  native.assign(histogram);
  CHECK(expand(native) == std::map<int, std::uint64_t>{{6 * 4 + 1, 3}});  // (2^6, 2^6.25] s
}

TEST_CASE("small gaps are filled, large ones begin a span") {
  Histogram histogram;
  histogram.slots[0] = 99;  // the zero bucket is none of these
  for (const std::size_t slot : {1U, 4U, 8U}) {
    histogram.slots.at(slot) = slot;
  }
  NativeBuckets native;
  native.assign(histogram);
  REQUIRE(native.spans.size() == 2);
  CHECK(native.spans[0].offset == -79);
  CHECK(native.spans[0].length == 4);
  CHECK(native.spans[1].offset == 3);
  CHECK(native.spans[1].length == 1);
  CHECK(native.deltas == std::vector<std::int64_t>{1, -1, 0, 4, 4});
}

TEST_CASE("no count is lost or moved, whatever the distribution") {
  std::mt19937_64 random(42);
  for (int i = 0; i < 300; ++i) {
    Histogram coarse;
    FineHistogram fine;
    const auto fill = [&random, density = random() % 20 + 1](auto& slots) {
      for (std::uint64_t& slot : slots) {
        slot = random() % density == 0 ? random() >> (random() % 64) >> 1 : 0;
      }
    };
    fill(coarse.slots);
    fill(fine.slots);
    check(coarse);
    check(fine);
  }
}

}  // namespace
}  // namespace tacho::metrics
