#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "probes/sample.h"

// The parts of the time of a target's requests: now, and before.

namespace tacho::scrape {

/// Calls to one peer so far.
struct CallSums {
  std::uint32_t slot = 0;  ///< the peer's, among the target's
  std::uint64_t calls = 0;
  std::uint64_t ns = 0;          ///< last send to first byte back
  std::uint64_t in_line_ns = 0;  ///< of calls by threads that had a request to answer
};

/// The underlying counters, cumulative, at one time.
struct WaitSums {
  std::int64_t time_ns = 0;  ///< of any monotonic clock
  std::uint64_t requests = 0;
  probes::Anatomy::Parts all;      ///< of requests whose mode is known
  probes::Anatomy::Parts slow;     ///< of these, the slow ones
  std::uint64_t slow_ns = 0;       ///< a longer request is slow, now; 0: unavailable
  std::uint64_t running_ns = 0;    ///< time of the target's threads on CPUs
  std::uint64_t runnable_ns = 0;   ///< … waiting for one
  std::uint64_t throttled_ns = 0;  ///< … that a quota kept from their CPUs, summed over these
  double cores = 0;                ///< CPUs that the target may use; not cumulative; 0: unavailable
  std::vector<CallSums> calls;     ///< by slot, rising
};

/// The sums of a sample; nothing if the parts of its requests are unavailable.
std::optional<WaitSums> wait_sums(const probes::TargetSample& sample);

/// Mean seconds by part, and of how many requests.
struct MeanParts {
  double requests = 0;
  double seconds = 0;  ///< the duration: the sum of the parts
  std::array<double, TACHO_PARTS> parts{};
};

/// The largest one, of those from `first` on.
request_part largest_part(const std::array<double, TACHO_PARTS>& parts, request_part first = TACHO_PART_QUEUE);

/// The requests and waits of a period.
struct Waits {
  struct Calls {
    std::uint32_t slot = 0;
    double calls = 0;    ///< a request
    double seconds = 0;  ///< a request: all of its calls
    double in_line = 0;  ///< of these, by threads that had a request to answer
  };

  double seconds = 0;    ///< length of the period
  double requests = 0;   ///< all that were answered
  MeanParts all;         ///< those whose mode is known
  double running = 0;    ///< threads on CPUs, on average
  double runnable = 0;   ///< threads that waited for one, on average
  double throttled = 0;  ///< CPUs that a quota took from the target's threads, on average
  double cores = 0;      ///< CPUs that the target might use; 0: unavailable
  std::vector<Calls> calls;

  [[nodiscard]] double rate() const { return seconds > 0 ? requests / seconds : 0; }
};

/// The waits between two samples.
Waits between(const WaitSums& older, const WaitSums& newer);

/// The last hour of a target in bounded memory. Plain values in, no clock; not synchronised. If time or a counter goes
/// back, history begins anew.
///
/// Memory: with a window of ten seconds up to 34 samples of 0.3 KiB, and 24 bytes a peer that was called: one every
/// half window for a minute, one a minute for six, one every five minutes for an hour.
class WaitHistory {
 public:
  /// With fewer requests in the window, "now" is the last minute.
  static constexpr std::uint64_t kEnough = 100;

  /// Slow requests: of the window, or of as much as it takes to have ten of them, up to five minutes.
  static constexpr std::uint64_t kEnoughSlow = 10;

  struct Slow {
    MeanParts mean;
    double seconds = 0;    ///< length of the period
    double threshold = 0;  ///< in seconds, if it was the same throughout; else 0
  };

  /// No period is much longer than its name: there is no data of the time in which tacho was stopped.
  struct Periods {
    Waits now;                          ///< the window and up to half of it more, or the last minute
    Slow slow;                          ///< now
    std::optional<Waits> five_minutes;  ///< those before; less where there was no more
    std::optional<Waits> hour;          ///< the hour before, as far as it is longer than `five_minutes`
  };

  /// @param window of the gauges
  explicit WaitHistory(std::chrono::nanoseconds window) { set_window(window); }

  /// Applies another window; the samples stay.
  void set_window(std::chrono::nanoseconds window);
  void push(WaitSums sums);

  /// Nothing in the first window.
  [[nodiscard]] std::optional<Periods> periods() const;
  /// The same of slow requests alone; empty if there were none.
  [[nodiscard]] Slow slow() const;
  /// The number of samples that are retained.
  [[nodiscard]] std::size_t samples() const;

 private:
  struct Level {
    std::int64_t apart_ns = 0;
    std::int64_t kept_ns = 0;
    std::deque<WaitSums> samples;
  };

  /// The latest sample that is at least that old, else the oldest one; none that is older than twice that.
  [[nodiscard]] const WaitSums* at_age(std::int64_t age_ns) const;
  [[nodiscard]] std::optional<Waits> before(const WaitSums& end, std::int64_t length_ns) const;

  std::int64_t window_ns_ = 0;
  std::array<Level, 3> levels_;
  std::optional<WaitSums> latest_;
};

}  // namespace tacho::scrape
