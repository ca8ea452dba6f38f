#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tacho::metrics {

enum class Type : std::uint8_t { counter, gauge, histogram };

/// A per-target metric family as a constant: METRICS.md, the series prefixes and the checks derive from it.
struct Family {
  std::string_view name;  ///< name of the samples in Prometheus text; a counter's ends in `_total`
  Type type = Type::counter;
  std::string_view unit;   ///< OpenMetrics unit ("seconds", "bytes", …) or empty; a suffix of the name without `_total`
  std::string_view help;   ///< one sentence; `{window}` is replaced by the configured window ("10s")
  std::string_view label;  ///< the family's own label, empty if it has none
  std::span<const std::string_view>
      values;         ///< its values in the order of the samples; empty with a label: known at run time
  bool fine = false;  ///< a histogram with sixteen slots an octave, without a label that is known at run time

  [[nodiscard]] constexpr bool dynamic() const { return !label.empty() && values.empty(); }
  /// How many samples (or histograms) a target's row has for this family; 0 if known at run time only.
  [[nodiscard]] constexpr std::size_t samples() const { return label.empty() ? 1 : values.size(); }
};

}  // namespace tacho::metrics
