#pragma once

#include <span>
#include <string>
#include <vector>

#include "scrape/scraper.h"

namespace tacho::scrape {

/// The document at /targets: what is watched, what is configured and absent.
std::string targets_json(std::span<const TargetSummary> targets, std::span<const std::string> absent);

/// The page at /: links and the table of targets, plain HTML.
std::string targets_html(std::span<const TargetSummary> targets, const std::string& telemetry_path);

/// The same table for a terminal.
std::string targets_text(std::span<const TargetSummary> targets);

}  // namespace tacho::scrape
