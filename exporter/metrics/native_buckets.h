#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "metrics/value.h"

namespace tacho::metrics {

/// A histogram as a native one of Prometheus: its slots are the buckets of a schema, so that no count is split or
/// moved. Bucket i of schema s is (2^((i-1)/2^s), 2^(i/2^s)] seconds. Slot 0 is the zero bucket. Durations above every
/// bound are in the bucket that begins at the last one, where the classic form has +Inf: quantiles end there in both.
struct NativeBuckets {
  /// `length` buckets in a row, behind `offset` empty ones; the first span's is the index of its first bucket.
  struct Span {
    std::int32_t offset = 0;
    std::uint32_t length = 0;
  };

  std::vector<Span> spans;
  std::vector<std::int64_t> deltas;  ///< of each bucket's count to the bucket's before it, the first one's to 0

  /// Becomes the form of this histogram; its memory is reused.
  template <std::size_t PerOctave>
  void assign(const SlotHistogram<PerOctave>& histogram) {
    // An empty bucket is a byte, a span some six.
    constexpr std::size_t kMaxGap = 2;
    constexpr std::int32_t kFirst = 1 - static_cast<std::int32_t>(TACHO_HISTOGRAM_FIRST_OCTAVE * PerOctave);
    spans.clear();
    deltas.clear();
    std::uint64_t before = 0;
    std::size_t next = 1;  // behind the last bucket that is there
    for (std::size_t slot = 1; slot < histogram.slots.size(); ++slot) {
      const std::uint64_t count = histogram.slots[slot];
      if (count == 0) {
        continue;
      }
      const std::size_t gap = slot - next;
      if (spans.empty()) {
        spans.push_back({.offset = kFirst + static_cast<std::int32_t>(gap), .length = 0});
      } else if (gap > kMaxGap) {
        spans.push_back({.offset = static_cast<std::int32_t>(gap), .length = 0});
      } else {
        for (std::size_t empty = 0; empty < gap; ++empty) {
          add(before, 0);
        }
      }
      add(before, count);
      next = slot + 1;
    }
  }

 private:
  void add(std::uint64_t& before, std::uint64_t count) {
    deltas.push_back(static_cast<std::int64_t>(count - before));
    before = count;
    ++spans.back().length;
  }
};

/// The schema whose buckets are a histogram's slots: 4 of sixteen an octave, 2 of four.
template <std::size_t PerOctave>
inline constexpr int kNativeSchema = std::countr_zero(PerOctave);
static_assert(kNativeSchema<FineHistogram::kPerOctave> == 4 && kNativeSchema<Histogram::kPerOctave> == 2);

/// Upper bound of slot 0 in seconds.
inline constexpr double kZeroThreshold = 1.0 / (1U << TACHO_HISTOGRAM_FIRST_OCTAVE);

}  // namespace tacho::metrics
