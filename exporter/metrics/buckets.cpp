#include "metrics/buckets.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "metrics/number.h"

namespace tacho::metrics {
namespace {

constexpr std::size_t kPerOctave = TACHO_HISTOGRAM_PER_OCTAVE;
constexpr std::array<std::uint64_t, FineHistogram::kPerOctave + 1> kOctaveBounds TACHO_HISTOGRAM_OCTAVE_BOUNDS;
constexpr std::array<std::uint8_t, 32> kBoundsBelow TACHO_HISTOGRAM_BOUNDS_BELOW;

static_assert(kSlots <= 256, "BucketLayout::Bucket keeps a slot in one byte");

/// Bounds of the detail `coarse`: 2^-16 s, 2^-14 s, … 4 s.
constexpr std::size_t kCoarseFirst = (TACHO_HISTOGRAM_FIRST_OCTAVE - 16) * kPerOctave;
constexpr std::size_t kCoarseLast = (TACHO_HISTOGRAM_FIRST_OCTAVE + 2) * kPerOctave;
constexpr std::size_t kCoarseStep = 2 * kPerOctave;

BucketLayout::Bucket make_bucket(std::size_t slot) {
  BucketLayout::Bucket bucket;
  bucket.bound = slot_bound_seconds(slot, kPerOctave);
  const std::string tail = canonical(bucket.bound) + "\"} ";
  bucket.last_slot = static_cast<std::uint8_t>(slot);
  bucket.length = static_cast<std::uint8_t>(tail.copy(bucket.text.data(), bucket.text.size()));
  return bucket;
}

template <std::size_t PerOctave>
std::uint64_t count(const SlotHistogram<PerOctave>& histogram) {
  return std::accumulate(histogram.slots.begin(), histogram.slots.end(), std::uint64_t{0});
}

template <std::size_t PerOctave>
double interpolated(const SlotHistogram<PerOctave>& histogram, double q) {
  const std::size_t overflow = histogram.slots.size() - 1;
  const std::uint64_t observations = count(histogram);
  if (observations == 0 || std::isnan(q)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(observations);
  std::uint64_t below = 0;
  std::size_t slot = 0;
  while (slot < overflow && (histogram.slots[slot] == 0 || static_cast<double>(below + histogram.slots[slot]) < rank)) {
    below += histogram.slots[slot];
    ++slot;
  }
  if (slot == overflow) {
    return slot_bound_seconds(overflow - 1, PerOctave);
  }
  const double lower = slot == 0 ? 0.0 : slot_bound_seconds(slot - 1, PerOctave);
  const double share = (rank - static_cast<double>(below)) / static_cast<double>(histogram.slots[slot]);
  return lower + (slot_bound_seconds(slot, PerOctave) - lower) * share;
}

}  // namespace

std::size_t fine_slot_of(std::uint64_t ns) {
  constexpr std::size_t kOverflow = TACHO_HISTOGRAM_FINE_SLOTS - 1;
  if (ns <= TACHO_HISTOGRAM_FIRST_BOUND_NS) {
    return 0;
  }
  if (ns > TACHO_HISTOGRAM_LAST_BOUND_NS) {
    return kOverflow;
  }
  const auto octave = static_cast<std::size_t>(std::bit_width(ns)) - 1;
  const std::uint64_t scaled = ns << (TACHO_HISTOGRAM_BOUNDS_OCTAVE - octave);
  const std::size_t below = kBoundsBelow.at((scaled >> (TACHO_HISTOGRAM_BOUNDS_OCTAVE - 5)) & 31);
  return octave * FineHistogram::kPerOctave + below + (scaled > kOctaveBounds.at(below) ? 1 : 0) -
         TACHO_HISTOGRAM_SLOTS_BELOW_ZERO;
}

std::size_t slot_of(std::uint64_t ns) {
  return coarse_slot(fine_slot_of(ns));
}

double slot_bound_seconds(std::size_t slot, std::size_t per_octave) {
  if (slot > TACHO_HISTOGRAM_OCTAVES * per_octave) {
    return std::numeric_limits<double>::infinity();
  }
  const double part = static_cast<double>(slot % per_octave) / static_cast<double>(per_octave);
  return std::ldexp(std::exp2(part), static_cast<int>(slot / per_octave) - TACHO_HISTOGRAM_FIRST_OCTAVE);
}

std::uint64_t slot_bound_ns(std::size_t slot) {
  if (slot >= kOverflowSlot) {
    return kUnbounded;
  }
  // Slot 0 ends at bound 14 of the octave of 2^9 ns, slot 1 four of the sixteen further on.
  const std::size_t bound = slot * (FineHistogram::kPerOctave / kPerOctave) + TACHO_HISTOGRAM_SLOTS_BELOW_ZERO;
  return kOctaveBounds.at(bound % FineHistogram::kPerOctave) >>
         (TACHO_HISTOGRAM_BOUNDS_OCTAVE - bound / FineHistogram::kPerOctave);
}

BucketLayout::BucketLayout(unsigned per_octave) {
  const std::size_t step = per_octave == 2 || per_octave == 4 ? kPerOctave / per_octave : kPerOctave;
  auto& [full, coarse, mean] = buckets_;
  for (std::size_t slot = 0; slot < kOverflowSlot; slot += step) {
    full.push_back(make_bucket(slot));
  }
  for (std::size_t slot = kCoarseFirst; slot <= kCoarseLast; slot += kCoarseStep) {
    coarse.push_back(make_bucket(slot));
  }
  for (auto& buckets : buckets_) {
    buckets.push_back(make_bucket(kOverflowSlot));
  }
  if (per_octave != 0) {
    coarse = full;
    mean = full;
  }
}

std::uint64_t total(const Histogram& histogram) {
  return count(histogram);
}

std::uint64_t total(const FineHistogram& histogram) {
  return count(histogram);
}

double quantile(const Histogram& histogram, double q) {
  return interpolated(histogram, q);
}

double quantile(const FineHistogram& histogram, double q) {
  return interpolated(histogram, q);
}

}  // namespace tacho::metrics
