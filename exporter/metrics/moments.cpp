#include "metrics/moments.h"

#include <algorithm>

namespace tacho::metrics {
namespace {

std::int64_t wrapping(std::uint64_t x) {
  return static_cast<std::int64_t>(x);
}

Uint128 magnitude(std::int64_t x) {
  return x < 0 ? 0 - static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
}

/// In ns². With S = Σδ = m·n + r (division towards zero), Σ(δ−m)² = Σδ² − m·(S + r), and the variance is its mean
/// less (r/n)², which is below 1 ns²: nothing large cancels. m and S + r have the same sign, and their product is at
/// most 2^127.
long double variance_ns2(const Moments& gained) {
  const Uint128 n = gained.intervals;
  if (n == 0) {
    return 0;
  }
  const Uint128 sum = magnitude(gained.interval_ns);
  const Uint128 rest = sum % n;
  const Uint128 shift = (sum / n) * (sum + rest);
  const Uint128 spread = gained.square_ns2 > shift ? gained.square_ns2 - shift : 0;
  const auto count = static_cast<long double>(gained.intervals);
  const long double offset = static_cast<long double>(rest) / count;
  return std::max(static_cast<long double>(spread) / count - offset * offset, 0.0L);
}

}  // namespace

Moments& Moments::operator+=(const Moments& other) {
  operations += other.operations;
  bytes += other.bytes;
  intervals += other.intervals;
  idle_gaps += other.idle_gaps;
  interval_ns = wrapping(static_cast<std::uint64_t>(interval_ns) + static_cast<std::uint64_t>(other.interval_ns));
  idle_gap_ns += other.idle_gap_ns;
  square_ns2 += other.square_ns2;
  return *this;
}

Moments operator-(const Moments& newer, const Moments& older) {
  Moments gained;
  gained.operations = newer.operations - older.operations;
  gained.bytes = newer.bytes - older.bytes;
  gained.intervals = newer.intervals - older.intervals;
  gained.idle_gaps = newer.idle_gaps - older.idle_gaps;
  gained.interval_ns =
      wrapping(static_cast<std::uint64_t>(newer.interval_ns) - static_cast<std::uint64_t>(older.interval_ns));
  gained.idle_gap_ns = newer.idle_gap_ns - older.idle_gap_ns;
  gained.square_ns2 = newer.square_ns2 - older.square_ns2;
  return gained;
}

double variance_seconds2(const Moments& gained) {
  return static_cast<double>(variance_ns2(gained) * 1e-18L);
}

double cv2(const Moments& gained) {
  if (gained.intervals == 0 || gained.interval_ns <= 0) {
    return 0;
  }
  const long double mean = static_cast<long double>(gained.interval_ns) / static_cast<long double>(gained.intervals);
  return static_cast<double>(variance_ns2(gained) / (mean * mean));
}

double seconds_squared(Uint128 ns2) {
  return static_cast<double>(static_cast<long double>(ns2) * 1e-18L);
}

}  // namespace tacho::metrics
