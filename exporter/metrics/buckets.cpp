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

static_assert(kPerOctave == 4, "the two bits below the leading one choose the slot of an octave");
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

}  // namespace

std::size_t slot_of(std::uint64_t ns) {
  if (ns <= kFirstBoundNs) {
    return 0;
  }
  const std::uint64_t q = (ns - 1) / kStepNs;
  const auto octave = static_cast<std::size_t>(std::bit_width(q)) - 3;  // q >= 4
  return std::min(octave * kPerOctave + ((q >> octave) & 3) + 1, kOverflowSlot);
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
  return std::accumulate(histogram.slots.begin(), histogram.slots.end(), std::uint64_t{0});
}

double quantile(const Histogram& histogram, double q) {
  const std::uint64_t observations = total(histogram);
  if (observations == 0 || std::isnan(q)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(observations);
  std::uint64_t below = 0;
  std::size_t slot = 0;
  while (slot < kOverflowSlot &&
         (histogram.slots[slot] == 0 || static_cast<double>(below + histogram.slots[slot]) < rank)) {
    below += histogram.slots[slot];
    ++slot;
  }
  if (slot == kOverflowSlot) {
    return bound_seconds(kOverflowSlot - 1);
  }
  const double lower = slot == 0 ? 0.0 : bound_seconds(slot - 1);
  const double share = (rank - static_cast<double>(below)) / static_cast<double>(histogram.slots[slot]);
  return lower + (bound_seconds(slot) - lower) * share;
}

}  // namespace tacho::metrics
