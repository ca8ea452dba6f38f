#include "scrape/waits.h"

#include <algorithm>
#include <numeric>

#include "metrics/buckets.h"
#include "metrics/gain.h"

namespace tacho::scrape {
namespace {

using probes::Anatomy;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMinute = 60 * kSecond;
constexpr std::int64_t kFiveMinutes = 5 * kMinute;
constexpr std::int64_t kHour = 60 * kMinute;
/// Than was asked for: a longer period says something else.
constexpr std::int64_t kMostTimesLonger = 2;

double seconds(std::uint64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

std::uint64_t count(const Anatomy::Parts& parts) {
  return std::accumulate(parts.requests.begin(), parts.requests.end(), std::uint64_t{0});
}

MeanParts means(const Anatomy::Parts& older, const Anatomy::Parts& newer) {
  MeanParts mean{.requests = static_cast<double>(metrics::gain(count(older), count(newer)))};
  if (mean.requests == 0) {
    return mean;
  }
  for (std::size_t part = 0; part < mean.parts.size(); ++part) {
    mean.parts.at(part) = seconds(metrics::gain(older.ns.at(part), newer.ns.at(part))) / mean.requests;
    mean.seconds += mean.parts.at(part);
  }
  return mean;
}

}  // namespace

std::optional<WaitSums> wait_sums(const probes::TargetSample& sample) {
  if (!sample.socket || !sample.socket->anatomy) {
    return {};
  }
  const probes::SocketSample& socket = *sample.socket;
  WaitSums sums;
  sums.time_ns = sample.time_ns;
  sums.requests = metrics::total(socket.duration);
  sums.all = socket.anatomy->all;
  sums.slow = socket.anatomy->slow;
  sums.slow_ns = socket.anatomy->slow_ns;
  if (sums.requests == 0) {
    return {};
  }
  if (sample.sched) {
    sums.running_ns = sample.sched->counters.running_ns.value_or(0);
    sums.runnable_ns = sample.sched->runnable_ns;
    sums.throttled_ns = sample.sched->throttled_ns;
    sums.cores = sample.sched->counters.cores;
  }
  for (const probes::Dependency& peer : socket.dependencies) {
    if (const std::uint64_t calls = metrics::total(peer.duration); calls > 0) {
      sums.calls.push_back(
          {.slot = peer.slot, .calls = calls, .ns = peer.duration.sum_ns, .in_line_ns = peer.in_line_ns});
    }
  }
  return sums;
}

request_part largest_part(const std::array<double, TACHO_PARTS>& parts, request_part first) {
  return static_cast<request_part>(std::ranges::max_element(parts.begin() + first, parts.end()) - parts.begin());
}

Waits between(const WaitSums& older, const WaitSums& newer) {
  Waits waits;
  waits.seconds =
      seconds(metrics::gain(static_cast<std::uint64_t>(older.time_ns), static_cast<std::uint64_t>(newer.time_ns)));
  waits.requests = static_cast<double>(metrics::gain(older.requests, newer.requests));
  waits.all = means(older.all, newer.all);
  waits.cores = newer.cores;
  if (waits.seconds == 0 || waits.requests == 0) {
    return waits;
  }
  waits.running = seconds(metrics::gain(older.running_ns, newer.running_ns)) / waits.seconds;
  waits.runnable = seconds(metrics::gain(older.runnable_ns, newer.runnable_ns)) / waits.seconds;
  waits.throttled = seconds(metrics::gain(older.throttled_ns, newer.throttled_ns)) / waits.seconds;
  for (const CallSums& peer : newer.calls) {
    const auto found = std::ranges::lower_bound(older.calls, peer.slot, {}, &CallSums::slot);
    const bool is_known = found != older.calls.end() && found->slot == peer.slot;
    const CallSums known = is_known ? *found : CallSums{};
    if (const std::uint64_t calls = metrics::gain(known.calls, peer.calls); calls > 0) {
      waits.calls.push_back({.slot = peer.slot,
                             .calls = static_cast<double>(calls) / waits.requests,
                             .seconds = seconds(metrics::gain(known.ns, peer.ns)) / waits.requests,
                             .in_line = seconds(metrics::gain(known.in_line_ns, peer.in_line_ns)) / waits.requests});
    }
  }
  return waits;
}

void WaitHistory::set_window(std::chrono::nanoseconds window) {
  window_ns_ = window.count();
  levels_[0].apart_ns = window_ns_ / 2;
  levels_[0].kept_ns = std::max(kMinute, window_ns_);
  levels_[1].apart_ns = kMinute;
  levels_[1].kept_ns = std::max(kMinute, window_ns_) + kFiveMinutes;
  levels_[2].apart_ns = kFiveMinutes;
  levels_[2].kept_ns = std::max(kMinute, window_ns_) + kHour;
}

void WaitHistory::push(WaitSums sums) {
  if (latest_ && (sums.time_ns <= latest_->time_ns || sums.requests < latest_->requests ||
                  count(sums.all) < count(latest_->all))) {
    for (Level& level : levels_) {
      level.samples.clear();
    }
  }
  for (Level& level : levels_) {
    if (level.samples.empty() || sums.time_ns - level.samples.back().time_ns >= level.apart_ns) {
      level.samples.push_back(sums);
    }
    while (level.samples.size() > 1 && sums.time_ns - level.samples[1].time_ns >= level.kept_ns) {
      level.samples.pop_front();
    }
  }
  latest_ = std::move(sums);
}

std::size_t WaitHistory::samples() const {
  return std::accumulate(levels_.begin(), levels_.end(), std::size_t{0},
                         [](std::size_t sum, const Level& level) { return sum + level.samples.size(); });
}

const WaitSums* WaitHistory::at_age(std::int64_t age_ns) const {
  const WaitSums* best = nullptr;
  const WaitSums* oldest = nullptr;
  for (const Level& level : levels_) {
    for (const WaitSums& sums : level.samples) {
      if (latest_->time_ns - sums.time_ns >= age_ns && (best == nullptr || sums.time_ns > best->time_ns)) {
        best = &sums;
      }
      if (oldest == nullptr || sums.time_ns < oldest->time_ns) {
        oldest = &sums;
      }
    }
  }
  const WaitSums* found = best == nullptr ? oldest : best;
  const bool is_near = found != nullptr && latest_->time_ns - found->time_ns <= kMostTimesLonger * age_ns;
  return is_near ? found : nullptr;
}

std::optional<Waits> WaitHistory::before(const WaitSums& end, std::int64_t length_ns) const {
  const WaitSums* begin = at_age(latest_->time_ns - end.time_ns + length_ns);
  const std::int64_t length = begin == nullptr ? 0 : end.time_ns - begin->time_ns;
  if (length < std::min(window_ns_, kMinute) || length > kMostTimesLonger * length_ns) {
    return {};
  }
  return between(*begin, end);
}

WaitHistory::Slow WaitHistory::slow() const {
  Slow slow;
  if (!latest_) {
    return slow;
  }
  for (const std::int64_t age : {window_ns_, std::max(kMinute, window_ns_), std::max(kFiveMinutes, window_ns_)}) {
    const WaitSums* begin = at_age(age);
    if (begin != nullptr) {
      slow = {.mean = means(begin->slow, latest_->slow),
              .seconds = seconds(static_cast<std::uint64_t>(latest_->time_ns - begin->time_ns)),
              .threshold = begin->slow_ns == latest_->slow_ns ? seconds(latest_->slow_ns) : 0};
    }
    if (slow.mean.requests >= static_cast<double>(kEnoughSlow)) {
      break;
    }
  }
  return slow;
}

std::optional<WaitHistory::Periods> WaitHistory::periods() const {
  if (!latest_) {
    return {};
  }
  const WaitSums* begin = at_age(window_ns_);
  if (begin != nullptr && latest_->time_ns - begin->time_ns < window_ns_) {
    return {};
  }
  if (begin == nullptr || count(latest_->all) - count(begin->all) < kEnough) {
    begin = at_age(std::max(kMinute, window_ns_));
  }
  if (begin == nullptr) {
    return {};
  }
  Periods periods{.now = between(*begin, *latest_),
                  .slow = slow(),
                  .five_minutes = before(*begin, kFiveMinutes),
                  .hour = before(*begin, kHour)};
  if (periods.hour && periods.five_minutes && periods.hour->seconds <= periods.five_minutes->seconds) {
    periods.hour.reset();
  }
  return periods;
}

}  // namespace tacho::scrape
