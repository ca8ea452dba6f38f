#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bpf/anatomy.h"
#include "scrape/view.h"

// What the documents of json.h have in common.

namespace tacho::page {

/// With four digits, which are what anybody can see, and a fifth of the bytes of all seventeen; null for what is not
/// known.
nlohmann::json number(double value);
/// Seconds by name of the part, without those that are 0.
nlohmann::json parts_json(const std::array<double, TACHO_PARTS>& seconds);
/// The members that every document begins with.
nlohmann::json time_json(const scrape::ViewTime& time);
/// On one line.
std::string text(const nlohmann::json& document);

}  // namespace tacho::page
