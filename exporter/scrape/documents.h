#pragma once

#include <string>

namespace tacho::scrape {

/// METRICS.md: every family with type, labels and meaning, from the descriptors.
std::string metrics_document();

}  // namespace tacho::scrape
