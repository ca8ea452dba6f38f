#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "metrics/moments.h"
#include "metrics/send_history.h"

namespace tacho::metrics {

/// The counters behind the windowed gauges of one target at one time.
struct WindowSample {
  std::int64_t time_ns = 0;          ///< of any monotonic clock
  std::array<Moments, 2> direction;  ///< by Direction
  std::uint64_t poll_calls = 0;      ///< completed and in progress, that is: ever started
  std::uint64_t poll_ns = 0;         ///< time in completed calls, and the elapsed part of those in progress
};

/// The gauges of one target over the last `window`: differences of counters between the newest sample and the one
/// nearest to the window's start. Plain values in, no clock; not synchronised. All results are finite and not
/// negative. If time or a counter goes backwards, history starts anew with that sample; after a gap in the samples
/// (suspend) the window reaches back to the last sample before it.
///
/// Memory: one WindowSample (160 bytes) per push and window, at most 51 (a long window keeps samples a 48th of it
/// apart), and at most 3 KiB of SendHistory: about 5 KiB for 10 s sampled once a second, never above 12 KiB.
class Window {
 public:
  explicit Window(std::chrono::nanoseconds window);

  void push(const WindowSample& sample);

  /// Sends per second (ISPASS 2024, eq. 1: r / (t_r − t_1), with the intervals and idle gaps that were counted in the
  /// place of r − 1 sends) over the window or, if fewer than 2048 fell into it, over the last 2048 (or a few more), at
  /// most one hour back. 0 if nothing was sent within the window.
  [[nodiscard]] double observed_rps() const;

  /// Variance of the intervals in s² (eq. 2) over the window; 0 if there were none.
  [[nodiscard]] double variance(Direction direction) const;

  /// variance / mean².
  [[nodiscard]] double cv2(Direction direction) const;

  /// Mean time in a polling call in seconds: the time spent in them during the window over the calls started in it.
  /// Waits that fill the whole window start no call in it, so the calls counted are never fewer than the threads that
  /// must have waited for this time to come together: one thread that waits throughout gives the window's length, the
  /// largest value there is. 0 if no time was spent.
  [[nodiscard]] double poll_mean() const;

  /// Whether observed_rps stands on fewer than 2048 sends (the paper's least), or the gauges of the window on fewer
  /// than 100 (a variance of 100 exponential intervals is already ±28 %).
  [[nodiscard]] bool few_samples() const;

  /// Bytes held on the heap, at least.
  [[nodiscard]] std::size_t memory() const;

 private:
  [[nodiscard]] Moments gained(Direction direction) const;
  [[nodiscard]] SendPoint rate_base() const;

  std::int64_t window_ns_;
  std::deque<WindowSample> samples_;  ///< from the window's start to the newest
  SendHistory history_;
};

}  // namespace tacho::metrics
