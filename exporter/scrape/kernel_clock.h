#pragma once

#include <time.h>

#include <cstdint>
#include <cstdlib>

#include "base/clock.h"

namespace tacho::scrape {

inline double seconds_since(std::int64_t start_ns) {
  return static_cast<double>(kernel_now_ns() - start_ns) * 1e-9;
}

/// Converts the kernel's clock to Unix time. Both clocks run alike, so a moment keeps its Unix time from one scrape to
/// the next, until the clock is set or the machine has slept.
class WallClock {
 public:
  /// Detects whether the time was set.
  void update() {
    constexpr std::int64_t kStepNs = 50'000'000;  // more than two readings differ by on a machine that is not stuck
    const std::int64_t before = kernel_now_ns();
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const std::int64_t after = kernel_now_ns();
    const std::int64_t found = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec - (before + (after - before) / 2);
    if (std::abs(found - unix_ns_) > kStepNs + (after - before)) {
      unix_ns_ = found;
    }
  }
  /// Unix time at CLOCK_MONOTONIC's 0.
  [[nodiscard]] std::int64_t unix_ns() const { return unix_ns_; }

 private:
  std::int64_t unix_ns_ = 0;
};

}  // namespace tacho::scrape
