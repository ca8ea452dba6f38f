#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>

#include "config/web_config_file.h"

namespace tacho::web {

/// Token bucket of `rate_limit:` in the web configuration: a token every interval, at most `burst` saved up, full at
/// the start. Thread-safe.
class RateLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  RateLimiter(const config::RateLimit& limit, Clock::time_point now)
      : interval_(std::chrono::duration_cast<Clock::duration>(limit.interval)), burst_(limit.burst), updated_(now) {}

  /// Whether one more request may be served now.
  bool take(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    const std::chrono::duration<double> passed = now - updated_;
    tokens_ = std::min(burst_, tokens_ + passed / interval_);
    updated_ = now;
    if (tokens_ < 1) {
      return false;
    }
    tokens_ -= 1;
    return true;
  }

 private:
  const std::chrono::duration<double> interval_;
  const double burst_;
  std::mutex mutex_;
  double tokens_ = burst_;
  Clock::time_point updated_;
};

}  // namespace tacho::web
