#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bpf/lib/targets.h"
#include "config/config.h"

namespace tacho::scrape {

using ShedLevel = tacho_shed;

/// A step of the policy for one target: its growth since the last step.
struct ShedInput {
  std::uint64_t own_ns = 0;             ///< estimated time of tacho's programs for it
  std::optional<std::uint64_t> cpu_ns;  ///< thread time on CPUs; none: unavailable
  /// By level: whether it would save anything, since the target uses what the level does without.
  std::array<bool, TACHO_SHED_LEVELS> helps{};
};

/// What tacho does without for one target, and what led to it.
class Shed {
 public:
  [[nodiscard]] ShedLevel level() const { return level_; }
  /// Whether a limit is exceeded although nothing is left to do without.
  [[nodiscard]] bool exhausted() const { return exhausted_; }

 private:
  friend class Shedding;

  void raise(const ShedInput& input, double excess);
  void lower();
  void forget_calm() { calm_s_ = quiet_s_ = 0; }

  ShedLevel level_ = TACHO_SHED_NOTHING;
  bool exhausted_ = false;
  std::uint32_t passed_ = 0;  // levels on the way to this one, by bit
  unsigned above_ = 0;        // samples in a row above the limit
  double least_excess_ = 0;   // of these: cost over limit
  double calm_s_ = 0;         // well below all limits for so long
  double quiet_s_ = 0;        // next to nothing for so long
  double hold_s_ = 0;         // so long it was to be calm when it left a level last; 0: it has not, or long ago
  double left_s_ = 0;         // since then; of the first level that it came back to: infinite afterwards
};

/// Decides once a second what tacho does without, so that its programs cost no more than the limits. Pure: no clock, no
/// I/O. A target above the limit in two samples in a row gets a higher level, or several at once if it is far above;
/// one that is well below for Limits::calm goes back by one. A level that is entered again soon after it was left
/// stays twice as long, up to an hour. Where the machine's limit is exceeded, the targets that cost most get a higher
/// level, until these are to have saved enough, if each saves half.
class Shedding {
 public:
  /// Of a CPU's time: what costs less is never shed for. One event in 256 is timed, so less is hardly more than noise.
  static constexpr double kLeastCost = 0.001;
  static constexpr unsigned kConfirmations = 2;
  static constexpr double kWellBelow = 0.5;
  static constexpr double kLongestHold = 3600;  ///< seconds

  struct Step {
    Shed* target = nullptr;
    ShedInput input;
  };
  /// @param elapsed_ns since the last step
  /// @param cpus that are online
  /// @return indices of the steps whose level has changed
  std::vector<std::size_t> run(std::span<const Step> steps, const config::Limits& limits, std::uint64_t elapsed_ns,
                               double cpus);

 private:
  struct Second;
  static void judge(const Step& step, Second& second);
  void judge_machine(std::span<const Step> steps, const Second& second);

  unsigned machine_above_ = 0;  // samples in a row above the machine's limit
};

}  // namespace tacho::scrape
