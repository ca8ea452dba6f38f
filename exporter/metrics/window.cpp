#include "metrics/window.h"

#include <algorithm>
#include <cmath>

#include "metrics/gain.h"

namespace tacho::metrics {
namespace {

constexpr std::uint64_t kEnoughForRate = 2048;
constexpr std::uint64_t kEnoughForWindow = 100;
constexpr std::int64_t kSamplesPerWindow = 48;

constexpr std::size_t index(Direction direction) {
  return static_cast<std::size_t>(direction);
}

bool went_back(const WindowSample& from, const WindowSample& to) {
  if (to.time_ns < from.time_ns) {
    return true;
  }
  // Σδ is left out: it may fall a little when two CPUs came out of order. So are the polls: a wait in progress is
  // estimated, and corrected when it ends.
  for (std::size_t i = 0; i < from.direction.size(); ++i) {
    const Moments& a = from.direction[i];
    const Moments& b = to.direction[i];
    if (b.operations < a.operations || b.intervals < a.intervals || b.idle_gaps < a.idle_gaps ||
        b.idle_gap_ns < a.idle_gap_ns || b.square_ns2 < a.square_ns2) {
      return true;
    }
  }
  return false;
}

SendPoint send_point(const WindowSample& sample) {
  return {sample.time_ns, sample.direction[index(Direction::send)]};
}

}  // namespace

Window::Window(std::chrono::nanoseconds window) : window_ns_(std::max<std::int64_t>(window.count(), 1)) {}

void Window::push(const WindowSample& sample) {
  if (!samples_.empty() && went_back(samples_.back(), sample)) {
    samples_.clear();
    history_.clear();
  }
  history_.push(send_point(sample));
  // The newest sample stays only until the next comes if it is too close to the one before it.
  const bool close = samples_.size() > 1 &&
                     samples_.back().time_ns - samples_[samples_.size() - 2].time_ns < window_ns_ / kSamplesPerWindow;
  if (close || (!samples_.empty() && samples_.back().time_ns == sample.time_ns)) {
    samples_.pop_back();
  }
  samples_.push_back(sample);
  const std::int64_t start = sample.time_ns - window_ns_;
  while (samples_.size() > 2 && std::abs(samples_[1].time_ns - start) <= std::abs(samples_[0].time_ns - start)) {
    samples_.pop_front();
  }
}

Moments Window::gained(Direction direction) const {
  return samples_.empty() ? Moments{}
                          : samples_.back().direction[index(direction)] - samples_.front().direction[index(direction)];
}

SendPoint Window::rate_base() const {
  const SendPoint now = send_point(samples_.back());
  const SendPoint start = send_point(samples_.front());
  if (now.sends - start.sends >= kEnoughForRate) {
    return start;
  }
  const SendPoint earlier = history_.before(now, kEnoughForRate);
  return earlier.time_ns < start.time_ns ? earlier : start;
}

double Window::observed_rps() const {
  const Moments window = gained(Direction::send);
  if (window.intervals + window.idle_gaps == 0) {
    return 0;
  }
  const SendPoint now = send_point(samples_.back());
  const SendPoint base = rate_base();
  const auto span_ns = static_cast<std::int64_t>(now.span_ns - base.span_ns);
  return span_ns > 0
             ? static_cast<double>(now.sends - base.sends) / static_cast<double>(span_ns) * kNanosecondsPerSecond
             : 0;
}

double Window::variance(Direction direction) const {
  return variance_seconds2(gained(direction));
}

double Window::cv2(Direction direction) const {
  return metrics::cv2(gained(direction));
}

double Window::poll_mean() const {
  if (samples_.empty()) {
    return 0;
  }
  const WindowSample& from = samples_.front();
  const WindowSample& to = samples_.back();
  const std::uint64_t spent_ns = gain(from.poll_ns, to.poll_ns);
  if (spent_ns == 0 || to.time_ns <= from.time_ns) {
    return 0;
  }
  const auto spent = static_cast<double>(spent_ns);
  // The elapsed part of a wait and the time of the sample are read one after the other: a hundredth is forgiven.
  const double waiters = std::ceil(spent / static_cast<double>(to.time_ns - from.time_ns) - 0.01);
  const auto started = static_cast<double>(gain(from.poll_calls, to.poll_calls));
  return spent / std::max({started, waiters, 1.0}) / kNanosecondsPerSecond;
}

bool Window::few_samples() const {
  const Moments window = gained(Direction::send);
  return window.intervals + window.idle_gaps < kEnoughForWindow ||
         send_point(samples_.back()).sends - rate_base().sends < kEnoughForRate;
}

std::size_t Window::memory() const {
  return samples_.size() * sizeof(WindowSample) + history_.memory();
}

}  // namespace tacho::metrics
