#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/liveness.h"
#include "base/result.h"
#include "web/counters.h"
#include "web/regulars.h"

namespace tacho::process {

/// State that the two processes share without waiting, in some pages of memory. It holds only numbers, a text to be
/// shown, and what one web process leaves to the next: neither process trusts the other further than that.
class SharedState {
 public:
  using Clock = std::chrono::steady_clock;  // the same in all processes

  /// In memory that is shared with whatever is forked later, and is never freed.
  static Result<SharedState*> create();

  // The collector's:

  /// The collector lives; `stuck` is the task that is stuck in it.
  void beat(const std::optional<Liveness::Stuck>& stuck, Clock::time_point now = Clock::now());
  void set_blindness(std::string_view text) { put(blindness_, text); }

  // The web process's:

  /// The task that is stuck on the other side: as it reported itself, or because it gave no sign of life for long.
  [[nodiscard]] std::optional<Liveness::Stuck> stuck(Clock::time_point now = Clock::now()) const;
  [[nodiscard]] std::string blindness() const { return get(blindness_); }
  web::GateCounters counters;
  web::RegularsMemory regulars;                  ///< left by one web process to the next
  std::atomic<std::uint64_t> beats = 0;          ///< one a second, while nothing hangs in it
  std::atomic<std::uint64_t> cpu_ns = 0;         ///< that it took, of all web processes so far
  std::atomic<std::uint64_t> dropped_lines = 0;  ///< of its log, of all web processes so far

 private:
  static constexpr std::size_t kTextSize = 256;
  /// Written by one process, read by others: an odd version is one that is being written.
  struct Text {
    std::atomic<std::uint32_t> version = 0;
    std::array<std::atomic<char>, kTextSize> bytes = {};
  };
  static void put(Text& text, std::string_view value);
  static std::string get(const Text& text);

  std::atomic<std::int64_t> beat_ns_ = 0;
  std::atomic<std::int64_t> stuck_since_ns_ = 0;  // 0: nothing is
  Text stuck_;
  Text blindness_;
};

}  // namespace tacho::process
