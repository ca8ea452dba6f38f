#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "config/config.h"

namespace tacho::config {

/// "10s", "1m30s", "500ms": whole numbers with the units h, m, s, ms, us, ns, from large to small, each at most once.
/// Errors: no unit, unknown unit, wrong order, more than Duration holds (292 years).
Result<Duration> parse_duration(std::string_view text);

/// The shortest text that parse_duration reads back as the same; `duration` is not negative.
std::string format_duration(Duration duration);

/// "1%", "0.25%": at most two decimals. Errors: no percent sign, more decimals, more than 100 %.
Result<Percent> parse_percent(std::string_view text);

/// The shortest text that parse_percent reads back as the same.
std::string format_percent(Percent percent);

}  // namespace tacho::config
