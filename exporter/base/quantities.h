#pragma once

#include <string>

namespace tacho {

// Quantities as people read them, with three digits that count; a dash for NaN, what is not known.

/// "12.3", "123457".
std::string format_rate(double value);
/// Seconds, as "850 µs", "1.25 ms", "12.3 s".
std::string format_time(double seconds);
/// 0 … 1, as "26 %".
std::string format_share(double share);

}  // namespace tacho
