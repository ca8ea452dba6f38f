#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bpf/anatomy.h"
#include "scrape/view.h"

// Common parts of the documents of json.h.

namespace tacho::page {

/// A number with four significant digits, as many as a chart can show, in a fifth of the bytes of all seventeen; null
/// for an unavailable value.
nlohmann::json number(double value);
/// Seconds by name of the part, without those that are 0.
nlohmann::json parts_json(const std::array<double, TACHO_PARTS>& seconds);
/// The members that every document begins with.
nlohmann::json time_json(const scrape::ViewTime& time);
/// On one line.
std::string text(const nlohmann::json& document);

}  // namespace tacho::page
