#pragma once

#include <chrono>
#include <cstdint>

namespace tacho::process {

/// Whether somebody gives signs of life. It takes as many looks as seconds: where the whole machine, or the program,
/// was stopped for a while, there were none in between, and nobody was silent.
class Pulse {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kPatience = 15;  ///< seconds

  /// From now on somebody else's.
  void reset(Clock::time_point now) {
    looks_ = 0;
    looked_ = now;
  }
  /// @param signs so far
  /// @return whether there was none for long
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
