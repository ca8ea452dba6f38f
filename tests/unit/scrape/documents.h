#pragma once

#include <string>

namespace tacho::scrape {

/// METRICS.md: every family with type, labels and meaning, from the descriptors.
std::string metrics_document();

/// grafana/conditions.json: the table of conditions, for the generators of dashboards, alerts and rules.
std::string conditions_json();

}  // namespace tacho::scrape
