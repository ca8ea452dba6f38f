#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernel/support/wire.h"

// When something happened, as far as user space can tell: between two readings of the clock that the programs use.

namespace tacho::kernel_test {

struct Moment {
  std::int64_t earliest = 0;  ///< ns
  std::int64_t latest = 0;
};

/// Runs `work` and says when.
template <class Work>
Moment timed(Work work) {
  Moment moment;
  moment.earliest = now_ns();
  work();
  moment.latest = now_ns();
  return moment;
}

/// A duration that is known within bounds, or a sum of such.
struct Span {
  double least = 0;  ///< seconds
  double most = 0;

  Span& operator+=(const Span& other) {
    least += other.least;
    most += other.most;
    return *this;
  }
};

inline Span between(const Moment& from, const Moment& to) {
  return {static_cast<double>(std::max<std::int64_t>(to.earliest - from.latest, 0)) * 1e-9,
          static_cast<double>(to.latest - from.earliest) * 1e-9};
}

/// What the moments of operations say about the sums of their intervals and of the squares of these. With several
/// threads the operations' true order is unknown, but the k-th of them lies between the k-th smallest of the earliest
/// and the k-th smallest of the latest times.
struct IntervalSums {
  Span sum;
  Span squares;  ///< s²
};

inline IntervalSums intervals_of(const std::vector<Moment>& moments) {
  std::vector<std::int64_t> earliest;
  std::vector<std::int64_t> latest;
  for (const Moment& moment : moments) {
    earliest.push_back(moment.earliest);
    latest.push_back(moment.latest);
  }
  std::ranges::sort(earliest);
  std::ranges::sort(latest);
  IntervalSums sums;
  for (std::size_t i = 0; i + 1 < moments.size(); ++i) {
    const Span interval = between({earliest[i], latest[i]}, {earliest[i + 1], latest[i + 1]});
    sums.squares += {interval.least * interval.least, interval.most * interval.most};
  }
  sums.sum = between({earliest.front(), latest.front()}, {earliest.back(), latest.back()});
  return sums;
}

}  // namespace tacho::kernel_test
