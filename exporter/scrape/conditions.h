#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "metrics/family.h"
#include "metrics/window.h"
#include "scrape/condition_table.h"
#include "scrape/shedding.h"

namespace tacho::scrape {

/// Family `tacho_target_condition`: why a series may be wrong.
std::span<const metrics::Family> condition_families();

/// By Condition: whether it holds; nothing where it cannot be judged.
using Conditions = std::array<std::optional<bool>, kConditions>;

/// Names of the conditions that hold.
std::vector<std::string_view> holding(const Conditions& conditions);

/// The conditions that hold between two samples of a target.
/// @param few_samples from the gauges of that time
/// @param shed the highest level in between; none: it never had one
Conditions conditions(const metrics::WindowSample& older, const metrics::WindowSample& newer, bool few_samples,
                      std::optional<ShedLevel> shed);

}  // namespace tacho::scrape
