#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "metrics/window.h"

namespace tacho::metrics::test {

inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr std::int64_t kIdleLimit = kSecond;

/// A made-up target: when it sent, received and polled. counters_at() is what the kernel side would have counted.
struct Traffic {
  std::vector<std::int64_t> sends;  ///< rising times in ns
  std::vector<std::int64_t> receives;
  std::vector<std::pair<std::int64_t, std::int64_t>> waits;  ///< begin and end

  /// Appends sends with exponential distances.
  void send_poisson(std::mt19937_64& random, std::int64_t from, std::int64_t to, double per_second) {
    std::exponential_distribution<double> distance(per_second);
    for (auto t = static_cast<double>(from);;) {
      t += distance(random) * 1e9;
      if (t >= static_cast<double>(to)) {
        return;
      }
      sends.push_back(static_cast<std::int64_t>(t));
    }
  }

  static Moments moments_at(const std::vector<std::int64_t>& times, std::int64_t now) {
    Moments moments;
    for (std::size_t i = 0; i < times.size() && times[i] <= now; ++i) {
      ++moments.operations;
      if (i == 0) {
        continue;
      }
      const std::int64_t interval = times[i] - times[i - 1];
      if (interval > kIdleLimit) {
        ++moments.idle_gaps;
        moments.idle_gap_ns += static_cast<std::uint64_t>(interval);
      } else {
        ++moments.intervals;
        moments.interval_ns += interval;
        moments.square_ns2 += static_cast<Uint128>(interval) * static_cast<Uint128>(interval);
      }
    }
    return moments;
  }

  [[nodiscard]] WindowSample counters_at(std::int64_t now) const {
    WindowSample sample;
    sample.time_ns = now;
    sample.socket.emplace().direction = {moments_at(sends, now), moments_at(receives, now)};
    PollCounters& polls = sample.poll.emplace();
    for (const auto& [begin, end] : waits) {
      if (begin <= now) {
        ++polls.started;
        polls.ns += static_cast<std::uint64_t>(std::min(end, now) - begin);
      }
    }
    return sample;
  }
};

/// Eq. 1 by definition over the sends in (from, now]: from the send before the first of them to the last.
inline double naive_rps(const std::vector<std::int64_t>& sends, std::int64_t from, std::int64_t now) {
  const auto first = std::ranges::upper_bound(sends, from);
  const auto last = std::ranges::upper_bound(sends, now);
  const auto begin = first == sends.begin() ? first : first - 1;
  return last - begin < 2 ? 0 : static_cast<double>(last - begin - 1) * 1e9 / static_cast<double>(*(last - 1) - *begin);
}

/// The intervals not above the idle limit that ended in (from, now].
inline std::vector<double> intervals(const std::vector<std::int64_t>& times, std::int64_t from, std::int64_t now) {
  std::vector<double> result;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const std::int64_t interval = times[i] - times[i - 1];
    if (times[i] > from && times[i] <= now && interval <= kIdleLimit) {
      result.push_back(static_cast<double>(interval) / 1e9);
    }
  }
  return result;
}

}  // namespace tacho::metrics::test
