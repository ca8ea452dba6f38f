#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "config/web_config_file.h"

namespace tacho::web {

/// Token bucket of `rate_limit:` in the web configuration: a token every interval, at most `burst` saved up, full at
/// the start. Whoever empties the bucket does not stop a source that was served before and returns (class Regulars):
/// such a source is served once in kReturns, or once an interval where that is longer. Thread-safe.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr auto kReturns = std::chrono::seconds(1);

  RateLimiter(const config::RateLimit& limit, Clock::time_point now)
      : interval_(std::chrono::duration_cast<Clock::duration>(limit.interval)), burst_(limit.burst), updated_(now) {}

  /// Whether one more request may be served now.
  /// @param regular  its source, if that is one of Regulars; else empty
  bool take(Clock::time_point now, const std::string& regular = {}) {
    const std::lock_guard lock(mutex_);
    const std::chrono::duration<double> passed = now - updated_;
    tokens_ = std::min(burst_, tokens_ + passed / interval_);
    updated_ = now;
    const bool has_own = !regular.empty() && own_turn(regular, now);
    if (tokens_ < 1) {
      return has_own;
    }
    tokens_ -= 1;
    return true;
  }

 private:
  /// Whether the source was not served for so long; if so, it is now.
  bool own_turn(const std::string& source, Clock::time_point now) {
    const auto apart = std::max<std::chrono::duration<double>>(interval_, kReturns);
    std::erase_if(served_, [&](const auto& each) { return now - each.second >= apart; });
    return served_.emplace(source, now).second;
  }

  const std::chrono::duration<double> interval_;
  const double burst_;
  std::mutex mutex_;
  double tokens_ = burst_;
  Clock::time_point updated_;
  std::map<std::string, Clock::time_point> served_;  ///< regulars, within the last `apart`
};

}  // namespace tacho::web
