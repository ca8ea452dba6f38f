#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "bpf/lib/histogram.h"
#include "metrics/family.h"
#include "metrics/value.h"

namespace tacho::metrics {

inline constexpr std::size_t kSlots = TACHO_HISTOGRAM_SLOTS;
/// The slot of durations above every bound.
inline constexpr std::size_t kOverflowSlot = kSlots - 1;
/// "Bound" of the overflow slot.
inline constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

/// The slot that counts a duration of `ns`, as bpf/lib/histogram.h defines it; the kernel side must agree.
std::size_t slot_of(std::uint64_t ns);
/// The same of a fine histogram.
std::size_t fine_slot_of(std::uint64_t ns);
/// The slot of a histogram that a slot of a fine one is a part of.
constexpr std::size_t coarse_slot(std::size_t fine_slot) {
  constexpr std::size_t kParts = TACHO_HISTOGRAM_FINE_PER_OCTAVE / TACHO_HISTOGRAM_PER_OCTAVE;
  return (fine_slot + kParts - 1) / kParts;
}

/// The longest duration of a slot in whole nanoseconds, kUnbounded for the overflow slot. `slot` < kSlots.
std::uint64_t slot_bound_ns(std::size_t slot);

/// The slots' bounds that are exposed as cumulative buckets, and the spelling of their `le`.
class BucketLayout {
 public:
  /// One exposed bucket: it counts all slots up to and including `last_slot`.
  struct Bucket {
    double bound = 0;  ///< upper, in seconds
    std::uint8_t last_slot = 0;
    std::uint8_t length = 0;      ///< of the used part of `text`
    std::array<char, 30> text{};  ///< `0.5"} `: the `le` value and what ends a bucket's labels

    /// Its last slot in a histogram with so many slots an octave.
    [[nodiscard]] constexpr std::size_t last(std::size_t per_octave) const {
      return std::min<std::size_t>(last_slot * (per_octave / TACHO_HISTOGRAM_PER_OCTAVE),
                                   TACHO_HISTOGRAM_OCTAVES * per_octave + (last_slot == kOverflowSlot ? 1 : 0));
    }
    [[nodiscard]] std::string_view tail() const { return {text.data(), length}; }
    [[nodiscard]] std::string_view le() const { return tail().substr(0, length - 3U); }
  };

  /// `per_octave` is 1, 2 or 4, for all families; 0: as many as each family's detail says; anything else counts as 1.
  explicit BucketLayout(unsigned per_octave = 1);

  /// Those of a family with that detail, in rising order; the last one is +Inf.
  [[nodiscard]] const std::vector<Bucket>& buckets(Detail detail = Detail::full) const {
    return buckets_[static_cast<std::size_t>(detail)];
  }
  /// Lines that one histogram takes: its buckets, `_sum` and `_count`.
  [[nodiscard]] std::size_t lines(Detail detail = Detail::full) const { return buckets(detail).size() + 2; }

 private:
  std::array<std::vector<Bucket>, 3> buckets_;  // by detail
};

/// Inclusive upper bound in seconds of a slot of a histogram with that many slots an octave, nearest to
/// 2^(k/per_octave); infinity for the last one.
double slot_bound_seconds(std::size_t slot, std::size_t per_octave);

/// Number of observations.
std::uint64_t total(const Histogram& histogram);
std::uint64_t total(const FineHistogram& histogram);

/// The `q`-quantile (0…1, clamped) in seconds, linear inside a slot as Prometheus' histogram_quantile; the highest
/// bound if it falls into the overflow slot, NaN if there is no observation.
double quantile(const Histogram& histogram, double q);
double quantile(const FineHistogram& histogram, double q);

}  // namespace tacho::metrics
