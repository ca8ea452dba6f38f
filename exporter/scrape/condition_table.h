#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tacho::scrape {

/// Why a series of a target may be wrong, in the order of the table.
enum class Condition : std::uint8_t {
  multiplexed,
  busy_polling,
  few_samples,
  no_poll,
  lost_events,
  one_way,
  frozen,
  multiplexed_calls,
  unseen_polls,
  shed,
  shed_requests,
  unseen_arrivals
};
inline constexpr std::size_t kConditions = 12;

/// A condition is about the families that it names, and no other. HELP, METRICS.md, dashboards, alerts and the rules
/// for autoscalers are generated from the table.
struct ConditionEntry {
  std::string_view name;
  std::string_view meaning;                       ///< without a full stop: more text may follow
  std::span<const std::string_view> invalidates;  ///< names of families, sorted
};

std::span<const ConditionEntry> condition_table();

inline const ConditionEntry& entry(Condition condition) {
  return condition_table()[static_cast<std::size_t>(condition)];
}

/// Whether the condition with that name is about the family; false if there is none of that name.
bool invalidates(std::string_view condition, std::string_view family);

}  // namespace tacho::scrape
