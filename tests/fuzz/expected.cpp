#include "fuzz/expected.h"

#include <algorithm>

namespace tacho::fuzz {
namespace {

/// What two readings of the clock on different CPUs may differ.
constexpr double kClockSlack = 4e-6;

}  // namespace

using kernel_test::Moment;
using kernel_test::Span;

Span time_between(const Moment& from, const Moment& to) {
  const Span span = kernel_test::between(from, to);
  return {.least = std::max(0.0, span.least - kClockSlack), .most = std::max(0.0, span.most) + kClockSlack};
}

Bounds& Bounds::operator+=(double count) {
  least += count;
  most += count;
  return *this;
}

Bounds& Bounds::operator+=(const Span& span) {
  least += span.least;
  most += span.most;
  return *this;
}

bool Bounds::admit(double value) const {
  // Sums are written with nine digits.
  constexpr double kDigits = 1e-8;
  return value >= least - kDigits && value <= most + kDigits;
}

}  // namespace tacho::fuzz
