#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "metrics/family.h"
#include "metrics/window.h"
#include "scrape/condition_table.h"

namespace tacho::scrape {

/// Family `tacho_target_condition`: why a series may not mean what it says.
std::span<const metrics::Family> condition_families();

std::string_view condition_name(Condition condition);

/// By Condition: whether it holds; nothing where that could not be seen.
using Conditions = std::array<std::optional<bool>, kConditions>;

/// Names of the conditions that hold.
std::vector<std::string_view> holding(const Conditions& conditions);

/// What holds between two samples of a target.
/// @param few_samples as the gauges of that time say
Conditions conditions(const metrics::WindowSample& older, const metrics::WindowSample& newer, bool few_samples);

}  // namespace tacho::scrape
