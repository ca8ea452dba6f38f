#include "metrics/window.h"

#include <algorithm>
#include <cmath>

#include "metrics/gain.h"

namespace tacho::metrics {
namespace {

constexpr std::uint64_t kEnoughForRate = 2048;
constexpr std::uint64_t kEnoughForWindow = 100;
constexpr std::int64_t kSamplesPerWindow = 48;

constexpr std::size_t kSend = static_cast<std::size_t>(Direction::send);

/// All counters begin at 0, so a sample from which a part is missing still is as good a beginning.
const SocketCounters& sockets(const WindowSample& sample) {
  static const SocketCounters none;
  return sample.socket ? *sample.socket : none;
}

bool went_back(const WindowSample& from, const WindowSample& to) {
  if (to.time_ns < from.time_ns) {
    return true;
  }
  if (!from.socket || !to.socket) {
    return false;
  }
  // Σδ is left out: it may fall a little when two CPUs came out of order. So are the polls: a wait in progress is
  // estimated, and corrected when it ends.
  for (std::size_t i = 0; i < from.socket->direction.size(); ++i) {
    const Moments& a = from.socket->direction[i];
    const Moments& b = to.socket->direction[i];
    if (b.operations < a.operations || b.intervals < a.intervals || b.idle_gaps < a.idle_gaps ||
        b.idle_gap_ns < a.idle_gap_ns || b.square_ns2 < a.square_ns2) {
      return true;
    }
  }
  return false;
}

SendPoint send_point(const WindowSample& sample) {
  return {sample.time_ns, sockets(sample).direction[kSend]};
}

/// Where the rate of sends begins that ends with `newest`.
SendPoint rate_base(const WindowSample& oldest, const WindowSample& newest, const SendHistory& history) {
  const SendPoint now = send_point(newest);
  const SendPoint start = send_point(oldest);
  if (now.sends - start.sends >= kEnoughForRate) {
    return start;
  }
  const SendPoint earlier = history.before(now, kEnoughForRate);
  return earlier.time_ns < start.time_ns ? earlier : start;
}

double rate(const SendPoint& from, const SendPoint& to) {
  const auto span_ns = static_cast<std::int64_t>(to.span_ns - from.span_ns);
  return span_ns > 0 ? static_cast<double>(to.sends - from.sends) / static_cast<double>(span_ns) * kNanosecondsPerSecond
                     : 0;
}

std::uint64_t requests_gained(const WindowSample& from, const WindowSample& to) {
  const auto requests = [](const WindowSample& sample) {
    const auto& turns = sockets(sample).turns;
    return turns ? turns->requests : 0;
  };
  return gain(requests(from), requests(to));
}

double request_rate(const WindowSample& from, const WindowSample& to) {
  const auto elapsed_ns = static_cast<double>(to.time_ns - from.time_ns);
  return elapsed_ns > 0 ? static_cast<double>(requests_gained(from, to)) * kNanosecondsPerSecond / elapsed_ns : 0;
}

double poll_mean(const WindowSample& from, const WindowSample& to) {
  const PollCounters before = from.poll.value_or(PollCounters{});
  const PollCounters now = to.poll.value_or(PollCounters{});
  const std::uint64_t spent_ns = gain(before.ns, now.ns);
  if (spent_ns == 0 || to.time_ns <= from.time_ns) {
    return 0;
  }
  const auto spent = static_cast<double>(spent_ns);
  // The elapsed part of a wait and the time of the sample are read one after the other: a hundredth is forgiven.
  const double waiters = std::ceil(spent / static_cast<double>(to.time_ns - from.time_ns) - 0.01);
  std::uint64_t calls = gain(before.started, now.started);
  if (now.only_sleeps) {
    calls = std::max(calls, requests_gained(from, to));
  }
  const auto started = static_cast<double>(calls);
  return spent / std::max({started, waiters, 1.0}) / kNanosecondsPerSecond;
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
  samples_.back().number = ++pushes_;
  const std::int64_t start = sample.time_ns - window_ns_;
  std::size_t passed = 0;
  while (samples_.size() - passed > 2 &&
         std::abs(samples_[passed + 1].time_ns - start) <= std::abs(samples_[passed].time_ns - start)) {
    ++passed;
  }
  samples_.erase(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(passed));
}

Gauges Window::gauges() const {
  Gauges gauges;
  if (samples_.empty()) {
    return gauges;
  }
  const WindowSample& from = samples_.front();
  const WindowSample& to = samples_.back();
  for (std::size_t i = 0; i < gauges.variance.size(); ++i) {
    const Moments gained = sockets(to).direction.at(i) - sockets(from).direction.at(i);
    gauges.variance.at(i) = variance_seconds2(gained);
    gauges.cv2.at(i) = cv2(gained);
  }
  const std::uint64_t sent = send_point(to).sends - send_point(from).sends;
  const SendPoint base = rate_base(from, to, history_);
  gauges.observed_rps = sent > 0 ? rate(base, send_point(to)) : 0;
  gauges.few_samples = sent < kEnoughForWindow || send_point(to).sends - base.sends < kEnoughForRate;
  gauges.request_rate = request_rate(from, to);
  gauges.poll_mean = poll_mean(from, to);
  return gauges;
}

std::size_t Window::memory() const {
  return samples_.capacity() * sizeof(WindowSample) + history_.memory();
}

}  // namespace tacho::metrics
