#include "metrics/send_history.h"

#include <algorithm>
#include <iterator>

namespace tacho::metrics {
namespace {

/// Points closer than this to the one before are not kept, whatever the rate of pushes.
constexpr std::int64_t kLeastDistanceNs = 500'000'000;
/// A point goes when its neighbours are closer to each other than their age divided by this.
constexpr std::int64_t kSparsity = 10;

}  // namespace

void SendHistory::push(const SendPoint& point) {
  if (!points_.empty() && point.time_ns - points_.back().time_ns < kLeastDistanceNs) {
    return;
  }
  points_.push_back(point);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const bool inner = kept > 0 && i + 1 < points_.size();
    const bool dense = inner && points_[i + 1].time_ns - points_[kept - 1].time_ns <
                                    (point.time_ns - points_[i + 1].time_ns) / kSparsity;
    const bool old = point.time_ns - points_[i].time_ns > kReachNs;
    if (!dense && !old) {
      points_[kept++] = points_[i];
    }
  }
  points_.resize(kept);
  if (kept > kCapacity) {
    points_.erase(points_.begin(), points_.end() - static_cast<std::ptrdiff_t>(kCapacity));
  }
}

SendPoint SendHistory::before(const SendPoint& now, std::uint64_t sends) const {
  const auto latest = std::ranges::find_if(points_.rbegin(), points_.rend(),
                                           [&](const SendPoint& point) { return now.sends - point.sends >= sends; });
  if (latest != points_.rend()) {
    return *latest;
  }
  return points_.empty() ? now : points_.front();
}

}  // namespace tacho::metrics
