#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "metrics/family.h"
#include "metrics/value.h"
#include "probes/probe.h"
#include "scrape/condition_table.h"

namespace tacho::scrape {

/// Family `tacho_target_condition`: why a series may not mean what it says.
std::span<const metrics::Family> condition_families();

std::string_view condition_name(Condition condition);

/// What was not counted so far, of any target: a loss cannot be charged to one.
struct Losses {
  std::uint64_t lost = 0;      ///< events that the programs could not count
  std::uint64_t skipped = 0;   ///< events that the kernel kept from the programs
  std::uint64_t requests = 0;  ///< of all targets, for comparison
};

/// By Condition: whether it holds; nothing where that could not be seen.
using Conditions = std::array<std::optional<bool>, kConditions>;

/// Names of the conditions that hold.
std::vector<std::string_view> holding(const Conditions& conditions);

/// Watches the counters behind the conditions of one target over the window of the gauges.
class ConditionWatch {
 public:
  explicit ConditionWatch(std::chrono::nanoseconds window) : window_ns_(window.count()) {}

  void push(std::int64_t now_ns, const probes::ConditionCounters& counters, const Losses& losses);

  /// Requests per second over the window.
  [[nodiscard]] double request_rate() const;

  [[nodiscard]] Conditions evaluate(bool few_samples) const;

 private:
  struct Sample {
    std::int64_t time_ns = 0;
    probes::ConditionCounters counters;
    Losses losses;
  };
  std::int64_t window_ns_;
  std::deque<Sample> samples_;
};

}  // namespace tacho::scrape
