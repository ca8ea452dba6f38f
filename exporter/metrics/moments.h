#pragma once

#include <cstddef>
#include <cstdint>

namespace tacho::metrics {

/// ISO C++ has no 128-bit integer; Σδ² in ns² needs one (u64 overflows after 9 s at one event a second).
__extension__ using Uint128 = unsigned __int128;

enum class Direction : std::uint8_t { send, receive };

/// Cumulative counters of one direction of a target's socket operations. An interval is the time between two
/// consecutive operations of the whole target; one above the idle limit is an idle gap and counted as such only.
struct Moments {
  std::uint64_t operations = 0;
  std::uint64_t bytes = 0;
  std::uint64_t intervals = 0;  ///< n
  std::uint64_t idle_gaps = 0;
  std::int64_t interval_ns = 0;  ///< Σδ; a single δ may be negative when two CPUs came out of order
  std::uint64_t idle_gap_ns = 0;
  Uint128 square_ns2 = 0;  ///< Σδ²

  /// Adds what another shard counted.
  Moments& operator+=(const Moments& other);
};

/// The growth of a counter from `older` to `newer`: component by component, modulo 2^64 (2^128).
Moments operator-(const Moments& newer, const Moments& older);

/// Population variance E[δ²] − E[δ]² in s² (ISPASS 2024, eq. 2) of the intervals in `gained`, 0 if there are none.
/// Exact integers up to the last division, so that equal intervals give 0 however long they are; never negative, even
/// if the three sums were read at different times.
double variance_seconds2(const Moments& gained);

/// Squared coefficient of variation: variance / mean², 0 if the mean is not positive.
double cv2(const Moments& gained);

/// ns² as s², for a counter; keeps the order of its arguments.
double seconds_squared(Uint128 ns2);

}  // namespace tacho::metrics
