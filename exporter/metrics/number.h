#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "metrics/value.h"

namespace tacho::metrics {

/// No number written below is longer than this many characters.
inline constexpr std::size_t kMaxNumber = 32;

/// Writes `n` in decimal to `out`, which has room for kMaxNumber characters; returns the end.
char* write_count(char* out, std::uint64_t n);

/// Writes a magnitude of nanoseconds as exact decimal seconds without trailing zeros: "0", "12.5", "0.000001".
char* write_seconds(char* out, std::uint64_t nanoseconds);

/// Writes the shortest decimal that reads back as `x`, as Go's %g lays it out, so that Prometheus prints it the same
/// way; "NaN", "+Inf" and "-Inf" for what is not finite.
char* write_real(char* out, double x);

/// Writes a value by its kind: a count, signed nanoseconds as seconds, or a real number.
char* write_value(char* out, const Value& value);

/// A number as OpenMetrics 1.0 wants it in `le` and `quantile` labels ("Canonical Numbers"): as write_real, with ".0"
/// appended to what would read as an integer: "1.0", "1e-06", "+Inf".
std::string canonical(double x);

}  // namespace tacho::metrics
