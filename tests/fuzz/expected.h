#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "kernel/support/span.h"

namespace tacho::fuzz {

/// A number that must lie within bounds, which are equal where it is a count.
struct Bounds {
  double least = 0;
  double most = 0;
  Bounds& operator+=(double count);
  Bounds& operator+=(const kernel_test::Span& span);
  [[nodiscard]] bool admit(double value) const;
};

/// By name of what is counted (numbers.h).
using Expected = std::map<std::string_view, Bounds>;

/// When a step was done, and when its effect on the other side was certain.
struct Report {
  std::int64_t bytes = 0;
  kernel_test::Moment when;
  std::int64_t arrived = 0;  ///< at the latest
};

/// Between two moments, whose clocks may differ a little.
kernel_test::Span time_between(const kernel_test::Moment& from, const kernel_test::Moment& to);

}  // namespace tacho::fuzz
