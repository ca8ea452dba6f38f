#pragma once

#include "bpf/lib/histogram.h"
#include "metrics/value.h"
#include "probes/bracket.h"

namespace tacho::probes {

/// Adds a shard's histogram that programs may be changing. `_count` is the sum of the slots, so a torn read puts `_sum`
/// at most one event out of step.
template <std::size_t PerOctave, class Shard>
void add_histogram(metrics::SlotHistogram<PerOctave>& sum, const Shard& shard) {
  static_assert(sizeof(shard.slots) == sizeof(sum.slots));
  for (std::size_t i = 0; i < sum.slots.size(); ++i) {
    sum.slots[i] += load(shard.slots[i]);
  }
  sum.sum_ns += load(shard.sum_ns);
}

}  // namespace tacho::probes
