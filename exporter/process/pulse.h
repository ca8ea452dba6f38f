#pragma once

#include <chrono>
#include <cstdint>

namespace tacho::process {

/// Detects that another process gives no signs of life. Silence is counted in calls, one a second: while the whole
/// machine, or this program, was stopped there were no calls, so that time does not count.
class Pulse {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kPatience = 15;  ///< seconds

  /// Starts anew, for another process.
  void reset(Clock::time_point now) {
    looks_ = 0;
    looked_ = now;
  }
  /// @param signs so far
  /// @return whether there was none for kPatience seconds
  bool is_silent(std::uint64_t signs, Clock::time_point now) {
    if (signs != signs_) {
      signs_ = signs;
      reset(now);
    } else if (now - looked_ >= std::chrono::seconds(1)) {
      ++looks_;
      looked_ = now;
    }
    return looks_ >= kPatience;
  }

 private:
  std::uint64_t signs_ = 0;
  int looks_ = 0;
  Clock::time_point looked_;
};

}  // namespace tacho::process
