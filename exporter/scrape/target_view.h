#pragma once

#include <span>
#include <string>
#include <vector>

#include "scrape/view.h"

namespace tacho::scrape {

/// The document at /targets: what is watched, what is configured and absent.
std::string targets_json(std::span<const TargetSummary> targets, std::span<const std::string> absent);

}  // namespace tacho::scrape
