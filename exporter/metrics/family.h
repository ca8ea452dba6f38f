#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tacho::metrics {

enum class Type : std::uint8_t { counter, gauge, histogram };

/// When a sample of a target appears. It stays for as long as the target is reported (metrics/appearance.h).
enum class Appears : std::uint8_t {
  at_once,      ///< with its target, also at 0
  first_event,  ///< with its first value other than 0, each label value by itself: few targets have a use for it
};

/// The classic buckets of a histogram where `histograms.buckets_per_octave` is `auto`. All targets have the same ones,
/// whatever was observed: buckets of several targets can only be added up if they are the same.
enum class Detail : std::uint8_t {
  full,    ///< one an octave
  coarse,  ///< one every two octaves, from 15 µs to 4 s
  mean,    ///< none but +Inf: sum and count
};

/// A metric family as a constant: METRICS.md, the series prefixes and the checks derive from it.
struct Family {
  std::string_view name;  ///< name of the samples in Prometheus text; a counter's ends in `_total`
  Type type = Type::counter;
  std::string_view unit;   ///< OpenMetrics unit ("seconds", "bytes", …) or empty; a suffix of the name without `_total`
  std::string_view help;   ///< one sentence; `{window}` is replaced by the configured window ("10s")
  std::string_view label;  ///< the family's own label, empty if it has none
  std::span<const std::string_view>
      values;         ///< its values in the order of the samples; empty with a label: known at run time
  bool fine = false;  ///< a histogram with sixteen slots an octave, without a label that is known at run time
  Appears appears = Appears::at_once;
  Detail detail = Detail::full;      ///< of a histogram
  std::string_view sample_labels{};  ///< about tacho itself: names of the labels that its samples have, comma-separated
  std::span<const std::string_view> hooks{};        ///< without any of these its values would be untrue
  std::span<const std::string_view> value_hooks{};  ///< the hook that each label value needs besides

  /// The same family whose samples appear with their first event.
  [[nodiscard]] constexpr Family on_first_event() const {
    Family family = *this;
    family.appears = Appears::first_event;
    return family;
  }
  /// The same family with fewer classic buckets.
  [[nodiscard]] constexpr Family with(Detail buckets) const {
    Family family = *this;
    family.detail = buckets;
    return family;
  }

  /// The same family, which is absent if one of the hooks is not attached.
  [[nodiscard]] constexpr Family seen_by(std::span<const std::string_view> needed) const {
    Family family = *this;
    family.hooks = needed;
    return family;
  }
  /// The same family, each label value of which is absent without its own hook.
  [[nodiscard]] constexpr Family each_seen_by(std::span<const std::string_view> needed) const {
    Family family = *this;
    family.value_hooks = needed;
    return family;
  }

  [[nodiscard]] constexpr bool dynamic() const { return !label.empty() && values.empty(); }
  /// How many samples (or histograms) a target's row has for this family; 0 if known at run time only.
  [[nodiscard]] constexpr std::size_t samples() const { return label.empty() ? 1 : values.size(); }
};

}  // namespace tacho::metrics
