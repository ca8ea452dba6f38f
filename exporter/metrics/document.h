#pragma once

#include <span>
#include <string>
#include <string_view>

#include "metrics/family.h"

namespace tacho::metrics {

/// A section of METRICS.md: the heading `title` ("The `socket` probe") and a table of the families. `{window}` in a
/// help becomes "the configured window".
std::string metrics_markdown(std::string_view title, std::span<const Family> families);

}  // namespace tacho::metrics
