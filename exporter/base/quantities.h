#pragma once

#include <string>

namespace tacho {

// Quantities for people, with three significant digits. NaN, an unavailable value, is a dash.

/// "12.3", "123457".
std::string format_rate(double value);
/// Seconds, as "850 µs", "1.25 ms", "12.3 s".
std::string format_time(double seconds);
/// 0 … 1, as "26 %".
std::string format_share(double share);

}  // namespace tacho
