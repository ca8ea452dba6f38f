#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "metrics/moments.h"
#include "metrics/send_history.h"

namespace tacho::metrics {

/// Counters of turns, where receives and sends are visible.
struct TurnCounters {
  std::uint64_t requests = 0;
  std::uint64_t overlapped = 0;        ///< turns in which more data came before the reply
  std::uint64_t sampled = 0;           ///< turns examined for several requests in one read
  std::uint64_t repeated = 0;          ///< of these, with more than one
  std::uint64_t one_way = 0;           ///< messages without a reply
  std::uint64_t calls = 0;             ///< to dependencies
  std::uint64_t calls_overlapped = 0;  ///< of these, begun while another one was open
  std::uint64_t calls_sampled = 0;     ///< on streams, examined for several at a time
  std::uint64_t calls_repeated = 0;    ///< of these, with more than one
};

/// Operations and requests of a target so far, with the evidence for whether operations may be taken for requests.
struct SocketCounters {
  std::array<Moments, 2> direction;   ///< by Direction
  std::optional<TurnCounters> turns;  ///< none: receives or sends are not visible
  std::optional<std::uint64_t>
      queue_ns;  ///< time that requests waited for their first read; none: no arrivals are seen
};

/// Polling calls of a target so far.
struct PollCounters {
  std::uint64_t completed = 0;
  std::uint64_t nonblocking = 0;  ///< of these, called with a timeout of zero
  std::uint64_t started = 0;      ///< completed and in progress
  std::uint64_t ns = 0;           ///< time in completed calls, and the elapsed part of those in progress
  bool only_sleeps = false;       ///< calls that return at once are not seen
};

/// Threads of a target, and the CPUs that it may use.
struct ThreadCounters {
  std::optional<std::uint64_t> running_ns;  ///< thread time on CPUs so far; none: unavailable
  double cores = 0;                         ///< CPUs that the target may use, now; 0: unavailable
  std::optional<bool> frozen;               ///< now; none: unavailable
};

/// Events of all targets that were not counted so far: a loss cannot be attributed to one target.
struct Losses {
  std::uint64_t lost = 0;      ///< events that the programs could not count
  std::uint64_t skipped = 0;   ///< events for which the kernel skipped the programs
  std::uint64_t requests = 0;  ///< of all targets, for comparison
};

/// The counters of one target at one time that a window needs for gauges, saturation and conditions. A part is present
/// only where its probe is: an unavailable value is not 0.
struct WindowSample {
  std::int64_t time_ns = 0;  ///< of any monotonic clock
  std::optional<SocketCounters> socket;
  std::optional<PollCounters> poll;
  std::optional<ThreadCounters> threads;
  Losses losses;
  std::uint64_t number = 0;  ///< of the sample among all that were pushed; the Window sets it
};

/// Gauges of one target over a window. All are finite and not negative.
struct Gauges {
  double request_rate = 0;           ///< requests answered per second
  double observed_rps = 0;           ///< sends per second, see Window
  std::array<double, 2> variance{};  ///< of the intervals in s² (ISPASS 2024, eq. 2), by Direction; 0: there were none
  std::array<double, 2> cv2{};       ///< variance / mean²
  /// Mean time in a polling call in seconds: the time spent in them during the window over the calls started in it.
  /// Waits that fill the whole window start no call in it, so the calls counted are never fewer than the threads that
  /// must have waited for this time to come together: one thread that waits throughout gives the window's length, the
  /// largest value there is. 0 if no time was spent. Where only sleeps are seen, a busy server's calls are those that
  /// return at once: then its requests, if they are more, are taken for the calls.
  double poll_mean = 0;
  /// Whether observed_rps is based on fewer than 2048 sends (the paper's least), or the others on fewer than 100 (a
  /// variance of 100 exponential intervals is already ±28 %).
  bool few_samples = true;
};

/// The last samples of one target. A value over the window is the difference between the newest sample and the one
/// nearest to the window's start. Plain values in, no clock; not synchronised. If time or a counter goes backwards, the
/// history starts anew with that sample. After a gap in the samples (suspend) the window reaches back to the last
/// sample before it.
///
/// Memory: one WindowSample (368 bytes) per push and window, at most 51 (a long window keeps samples a 48th of it
/// apart), and at most 3 KiB of SendHistory: about 9 KiB for 10 s sampled once a second, never above 27 KiB.
class Window {
 public:
  explicit Window(std::chrono::nanoseconds window);

  void push(const WindowSample& sample);

  /// From the window's start to the newest one; empty before the first push.
  [[nodiscard]] std::span<const WindowSample> samples() const { return samples_; }

  /// Sends per second are eq. 1 of ISPASS 2024 (r / (t_r − t_1), with the intervals and idle gaps that were counted in
  /// the place of r − 1 sends) over the window or, if fewer than 2048 fell into it, over the last 2048 (or a few more),
  /// at most one hour back; 0 if nothing was sent within the window.
  [[nodiscard]] Gauges gauges() const;

  /// Bytes held on the heap, at least.
  [[nodiscard]] std::size_t memory() const;

 private:
  std::int64_t window_ns_;
  std::uint64_t pushes_ = 0;
  std::vector<WindowSample> samples_;
  SendHistory history_;
};

}  // namespace tacho::metrics
