#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bpf/lib/histogram.h"

namespace tacho::metrics {

/// One sample's value. Counts and nanoseconds stay integers until they are written, so that nothing is rounded:
/// `nanoseconds` is written as exact decimal seconds ("1.000000001"), `real` as the shortest round-trip double (NaN,
/// +Inf, -Inf spelled as Prometheus does). `absent` is unavailable: no line is written.
struct Value {
  enum class Kind : std::uint8_t { count, nanoseconds, real, absent };
  Kind kind = Kind::count;
  union {
    std::int64_t integer = 0;
    double real;
  };

  static Value count(std::uint64_t n) {
    Value v;
    v.integer = static_cast<std::int64_t>(n);
    return v;
  }
  static Value nanoseconds(std::int64_t ns) {
    Value v;
    v.kind = Kind::nanoseconds;
    v.integer = ns;
    return v;
  }
  static Value number(double x) {
    Value v;
    v.kind = Kind::real;
    v.real = x;
    return v;
  }
  static Value absent() {
    Value v;
    v.kind = Kind::absent;
    return v;
  }
};

/// A duration histogram as the kernel counts it (bpf/lib/histogram.h): not cumulative, sum in nanoseconds.
template <std::size_t PerOctave>
struct SlotHistogram {
  static constexpr std::size_t kPerOctave = PerOctave;
  std::array<std::uint64_t, 1 + TACHO_HISTOGRAM_OCTAVES * PerOctave + 1> slots{};
  std::uint64_t sum_ns = 0;
  bool absent = false;  ///< no line is written

  SlotHistogram& operator+=(const SlotHistogram& other) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      slots[i] += other.slots[i];
    }
    sum_ns += other.sum_ns;
    return *this;
  }
};

using Histogram = SlotHistogram<TACHO_HISTOGRAM_PER_OCTAVE>;
/// The source of quantiles, for people and in native histograms: at most 4.5 % off.
using FineHistogram = SlotHistogram<TACHO_HISTOGRAM_FINE_PER_OCTAVE>;

/// A sample of a family whose label values are only known at run time (such as `peer`).
struct DynamicSample {
  std::size_t family = 0;   ///< index into the probe's families
  std::string label_value;  ///< value of Family::label
  Value value;              ///< of a counter or gauge
  Histogram histogram;      ///< of a histogram family
};

/// One observation of a histogram, with its labels.
struct Exemplar {
  std::size_t fine = 0;      ///< its histogram, in Row::fine; the family has no label of its own
  std::uint64_t ns = 0;      ///< what was observed
  std::int64_t time_ns = 0;  ///< when, CLOCK_MONOTONIC
  std::vector<std::pair<std::string_view, std::string>> labels;  ///< 128 characters in all, by OpenMetrics
};

/// All samples of one target and one probe, in the order of the probe's families. A counter or gauge family
/// takes one entry of `values` per label value (one if it has no label of its own), a histogram family one entry
/// of `histograms` (or `fine`) per label value; families with run-time label values have their samples in `dynamic`.
struct Row {
  std::vector<Value> values;
  std::vector<Histogram> histograms;
  std::vector<DynamicSample> dynamic;
  std::vector<FineHistogram> fine;
  std::vector<Exemplar> exemplars;  ///< in no particular order; Prometheus text has no place for them

  /// Empties it; what it had stays its own.
  void clear() {
    values.clear();
    histograms.clear();
    dynamic.clear();
    fine.clear();
    exemplars.clear();
  }
  /// Makes room for as much as another one has, and for no more.
  void reserve_as(const Row& other) {
    values.reserve(other.values.size());
    histograms.reserve(other.histograms.size());
    fine.reserve(other.fine.size());
  }
};

}  // namespace tacho::metrics
