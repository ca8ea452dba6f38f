#include "metrics/buckets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>

#include "metrics/number.h"

namespace tacho::metrics {
namespace {

constexpr std::uint64_t kFirstBoundNs = 1000;
constexpr std::uint64_t kStepNs = 250;  // every bound is a multiple of it
constexpr std::size_t kPerOctave = TACHO_HISTOGRAM_PER_OCTAVE;

static_assert(kSlots <= 256, "BucketLayout::Bucket keeps a slot in one byte");

double bound_seconds(std::size_t slot) {
  return static_cast<double>(slot_bound_ns(slot)) / 1e9;
}

BucketLayout::Bucket make_bucket(std::size_t slot) {
  const std::string tail = (slot == kOverflowSlot ? "+Inf" : canonical(bound_seconds(slot))) + "\"} ";
  BucketLayout::Bucket bucket;
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
  constexpr std::uint64_t kPerOctaveFine = FineHistogram::kPerOctave;
  constexpr std::size_t kOverflow = TACHO_HISTOGRAM_FINE_SLOTS - 1;
  if (ns <= kFirstBoundNs) {
    return 0;
  }
  if (ns > kFirstBoundNs << TACHO_HISTOGRAM_OCTAVES) {
    return kOverflow;
  }
  // Steps of 62.5 ns, in halves of a nanosecond.
  const std::uint64_t steps = (2 * ns - 1) / (2 * kFirstBoundNs / kPerOctaveFine);
  const auto octave = static_cast<std::size_t>(std::bit_width(steps)) - 5;  // steps >= 16
  return std::min<std::size_t>(octave * kPerOctaveFine + ((steps >> octave) & (kPerOctaveFine - 1)) + 1, kOverflow);
}

std::size_t slot_of(std::uint64_t ns) {
  return coarse_slot(fine_slot_of(ns));
}

Histogram coarse(const FineHistogram& histogram) {
  Histogram out;
  for (std::size_t slot = 0; slot < histogram.slots.size(); ++slot) {
    out.slots[coarse_slot(slot)] += histogram.slots[slot];
  }
  out.sum_ns = histogram.sum_ns;
  return out;
}

double slot_bound_seconds(std::size_t slot, std::size_t per_octave) {
  constexpr double kFirstBound = 1e-6;
  if (slot == 0) {
    return kFirstBound;
  }
  const std::size_t octave = (slot - 1) / per_octave;
  if (octave >= TACHO_HISTOGRAM_OCTAVES) {
    return std::numeric_limits<double>::infinity();
  }
  const auto parts = static_cast<double>(per_octave + 1 + (slot - 1) % per_octave);
  return std::ldexp(kFirstBound * parts / static_cast<double>(per_octave), static_cast<int>(octave));
}

std::uint64_t slot_bound_ns(std::size_t slot) {
  if (slot == 0) {
    return kFirstBoundNs;
  }
  if (slot >= kOverflowSlot) {
    return kUnbounded;
  }
  const std::size_t octave = (slot - 1) / kPerOctave;
  const std::size_t quarter = (slot - 1) % kPerOctave;
  return (kStepNs * (kPerOctave + 1 + quarter)) << octave;
}

BucketLayout::BucketLayout(unsigned per_octave) {
  const std::size_t step = per_octave == 2 || per_octave == 4 ? kPerOctave / per_octave : kPerOctave;
  for (std::size_t slot = 0; slot < kOverflowSlot; slot += step) {
    buckets_.push_back(make_bucket(slot));
  }
  buckets_.push_back(make_bucket(kOverflowSlot));
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
