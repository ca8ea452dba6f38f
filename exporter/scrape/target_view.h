#pragma once

#include <span>
#include <string>
#include <vector>

#include "process/capabilities.h"
#include "scrape/view.h"

namespace tacho::scrape {

/// The document at /targets: what is watched, what is configured and absent, and what tacho itself may do.
std::string targets_json(std::span<const TargetSummary> targets, std::span<const std::string> absent,
                         std::span<const process::Rights> processes = {});

}  // namespace tacho::scrape
