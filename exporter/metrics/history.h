#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "metrics/buckets.h"
#include "metrics/value.h"

namespace tacho::metrics {

/// The counters that a target's history is made of: cumulative, at one time.
struct HistorySample {
  std::int64_t time_ns = 0;    ///< of any monotonic clock
  FineHistogram duration;      ///< of requests: arrival to first byte of the reply
  std::uint64_t queue_ns = 0;  ///< time that requests waited for their first read
  std::uint64_t idle_ns = 0;   ///< thread time spent in polling calls
  std::uint64_t threads = 0;   ///< that poll; not cumulative
  bool sees_queue = true;      ///< false: queue_ns is unavailable
};

/// The activity of a target over some seconds. NaN: unavailable.
struct Reading {
  double rate = 0;  ///< requests answered per second
  double p50;       ///< of their durations, seconds
  double p99;
  double queue_share;  ///< of the durations' sum that was spent before the first read, 0 … 1
  double idle_share;   ///< of the polling threads' time that was spent in polling calls, 0 … 1
};

/// Requests by duration, one number an octave: row 0 up to 2^-20 s, row k up to 2^(k-20) s, the last one above that.
inline constexpr std::size_t kHeatRows = TACHO_HISTOGRAM_OCTAVES + 2;
using HeatColumn = std::array<std::uint32_t, kHeatRows>;

/// The last five minutes of a target, sampled once a second. The samples are numbered: the tick is common to all
/// targets. Plain values in, no clock; not synchronised.
///
/// Memory: 0.4 KiB, and from the first request on 12.1 KiB more: 300 points of 12 bytes, 60 columns of 28 and two
/// histograms; besides, 8 bytes for each of the different durations of the last ten seconds (slots of a histogram).
class History {
 public:
  static constexpr std::size_t kPoints = 300;       ///< one a tick
  static constexpr std::size_t kRecent = 10;        ///< ticks behind recent()
  static constexpr std::uint64_t kColumnTicks = 5;  ///< ticks in a column
  static constexpr std::size_t kColumns = 60;       ///< with the one that is not complete yet
  static constexpr std::uint64_t kNow = std::numeric_limits<std::uint64_t>::max();  ///< the last tick, whichever it is

  /// `tick` is later than that of the previous push. Seconds between them without a sample (the program was stopped)
  /// share the difference evenly. The first sample is the beginning: nothing happened before it.
  void push(std::uint64_t tick, const HistorySample& sample);

  /// No request was answered so far.
  [[nodiscard]] bool empty() const { return requests_ == nullptr; }

  /// Over the last ten ticks.
  [[nodiscard]] Reading recent() const;
  /// Requests per second over the last ten ticks: the rate of recent(), without the cost of its quantiles.
  [[nodiscard]] double recent_rate() const;
  /// Durations of the requests of the last ten ticks.
  [[nodiscard]] FineHistogram recent_durations() const;

  /// One for each tick after `since` up to `until`, the latest last; at most kPoints, and none of before the first
  /// request. Rates are exact; durations are rounded to 0.5 %, shares to 0.2 %.
  [[nodiscard]] std::vector<Reading> points(std::uint64_t since, std::uint64_t until = kNow) const;
  /// The point of the last tick.
  [[nodiscard]] Reading last() const;

  /// One for each column of ticks that ended after `since`, the latest last, which is that of `until` or the one under
  /// way; at most kColumns. Numbers of complete columns are rounded to 5 %.
  [[nodiscard]] std::vector<HeatColumn> columns(std::uint64_t since, std::uint64_t until = kNow) const;

  /// Bytes held on the heap.
  [[nodiscard]] std::size_t memory() const;

 private:
  /// A Reading in 12 bytes.
  struct Point {
    float rate = 0;
    std::uint16_t p50 = 0;
    std::uint16_t p99 = 0;
    std::uint8_t queue = 0;
    std::uint8_t idle = 0;
  };
  /// The growth of a slot in one tick.
  struct Gain {
    std::uint16_t slot = 0;
    std::uint32_t count = 0;
  };
  /// The sums behind rates and shares.
  struct Sums {
    std::int64_t time_ns = 0;
    std::uint64_t requests = 0;
    std::uint64_t duration_ns = 0;
    std::uint64_t queue_ns = 0;
    std::uint64_t idle_ns = 0;
  };
  /// Needed only by targets that answer requests.
  struct Requests {
    std::array<Point, kPoints> points;
    std::array<std::array<std::uint8_t, kHeatRows>, kColumns> columns;
    std::array<std::vector<Gain>, kRecent> gained;  ///< by tick modulo kRecent
    FineHistogram recent;                           ///< the sum of `gained`
    FineHistogram previous;                         ///< as of the last push
    HeatColumn column{};                            ///< under way
    std::uint64_t first_tick = 0;
  };

  static Point pack(const Reading& reading);
  static Reading unpack(const Point& point);
  [[nodiscard]] Reading between(const Sums& older, const Sums& newer) const;
  /// Over the last ticks, without quantiles.
  [[nodiscard]] Reading since_ticks(std::size_t ticks) const;
  void push_one(std::uint64_t tick, const HistorySample& sample);
  void add(std::uint64_t tick, const HistorySample& sample, const Sums& before);
  /// The counters between the last push and `sample`, when a `part` of the difference had happened.
  [[nodiscard]] HistorySample part_way(const HistorySample& sample, double part) const;

  std::array<Sums, kRecent + 1> sums_{};  ///< by tick modulo its size
  std::uint64_t tick_ = 0;
  std::size_t pushes_ = 0;  ///< up to kRecent + 1
  std::uint64_t threads_ = 0;
  bool sees_queue_ = true;
  std::unique_ptr<Requests> requests_;
};

}  // namespace tacho::metrics
