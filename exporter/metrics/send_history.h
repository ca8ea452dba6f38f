#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "metrics/moments.h"

namespace tacho::metrics {

/// The number of sends up to a time, and the time between the first and the last of them.
struct SendPoint {
  std::int64_t time_ns = 0;
  std::uint64_t sends = 0;    ///< intervals and idle gaps: all sends but the first
  std::uint64_t span_ns = 0;  ///< their lengths, modulo 2^64

  SendPoint() = default;
  SendPoint(std::int64_t time, const Moments& send)
      : time_ns(time),
        sends(send.intervals + send.idle_gaps),
        span_ns(static_cast<std::uint64_t>(send.interval_ns) + send.idle_gap_ns) {}
};

/// Keeps points of the last hour, fewer the older they are: a neighbour is never farther than a tenth of the age away
/// (plus the distance of the pushes). At most kCapacity points.
class SendHistory {
 public:
  static constexpr std::size_t kCapacity = 127;
  static constexpr std::int64_t kReachNs = 3'600'000'000'000;

  /// `point` is later than all before.
  void push(const SendPoint& point);
  void clear() { points_.clear(); }

  /// The latest point that `now` has at least `sends` more sends than; the earliest there is if none has, `now` if the
  /// history is empty.
  [[nodiscard]] SendPoint before(const SendPoint& now, std::uint64_t sends) const;

  [[nodiscard]] std::size_t size() const { return points_.size(); }
  [[nodiscard]] std::size_t memory() const { return points_.capacity() * sizeof(SendPoint); }

 private:
  std::vector<SendPoint> points_;  ///< in order of time
};

}  // namespace tacho::metrics
