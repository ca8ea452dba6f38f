#include "scrape/shedding.h"

#include <algorithm>
#include <functional>
#include <limits>

namespace tacho::scrape {
namespace {

/// So many times the limit: two levels at once, and all that help.
constexpr double kFarAbove = 1.5;
constexpr double kStorm = 3;
/// What a level is expected to save where several targets share a limit.
constexpr double kExpectedSaving = 0.5;
/// The machine's limit is not filled any further than this by levels that are left.
constexpr double kRoom = 0.75;
constexpr double kSecondNs = 1e9;
constexpr double kForever = std::numeric_limits<double>::infinity();

unsigned levels_for(double excess) {
  return excess > kStorm ? TACHO_SHED_LEVELS : excess > kFarAbove ? 2 : 1;
}

}  // namespace

/// What holds for all targets in one step.
struct Shedding::Second {
  const config::Limits& limits;
  double elapsed_s = 0;
  double least_ns = 0;    // what costs less is quiet
  double all_ns = 0;      // cost of all targets
  double machine_ns = 0;  // their limit; infinite: none
  double room_ns = 0;     // for targets that go back

  [[nodiscard]] bool calm() const { return all_ns < kWellBelow * machine_ns; }
};

void Shed::raise(const ShedInput& input, double excess) {
  above_ = 0;
  forget_calm();
  const ShedLevel before = level_;
  unsigned left = levels_for(excess);
  for (std::size_t level = std::size_t{before} + 1; level < TACHO_SHED_LEVELS && left > 0; ++level) {
    if (input.helps.at(level)) {
      passed_ |= 1U << level_;
      level_ = static_cast<ShedLevel>(level);
      --left;
    }
  }
  exhausted_ = level_ == before;
  if (!exhausted_ && left_s_ < 2 * hold_s_) {
    hold_s_ = std::min(Shedding::kLongestHold, 2 * hold_s_);
    left_s_ = kForever;
  }
}

void Shed::lower() {
  auto level = static_cast<unsigned>(level_) - 1U;
  while (level > 0 && (passed_ & (1U << level)) == 0) {
    --level;
  }
  level_ = static_cast<ShedLevel>(level);
  passed_ &= (1U << level) - 1;
  exhausted_ = false;
}

void Shedding::judge(const Step& step, Second& second) {
  Shed& target = *step.target;
  const auto own = static_cast<double>(step.input.own_ns);
  const bool quiet = own < second.least_ns;
  double excess = 0;
  if (!quiet && second.limits.overhead.hundredths > 0 && step.input.cpu_ns) {
    // Never 0 / 0: what is not quiet has a cost.
    excess = own / (second.limits.overhead.share() * static_cast<double>(*step.input.cpu_ns));
  }
  target.left_s_ += second.elapsed_s;
  if (excess > 1) {
    target.least_excess_ = target.above_ == 0 ? excess : std::min(target.least_excess_, excess);
    target.forget_calm();
    if (++target.above_ >= kConfirmations) {
      target.raise(step.input, target.least_excess_);
    }
    return;
  }
  target.above_ = 0;
  const bool calm = quiet || (excess < kWellBelow && second.calm());
  target.exhausted_ = target.exhausted_ && !calm;
  target.calm_s_ = calm ? target.calm_s_ + second.elapsed_s : 0;
  target.quiet_s_ = quiet ? target.quiet_s_ + second.elapsed_s : 0;
  const double hold_s = std::max(target.hold_s_, static_cast<double>(second.limits.calm.count()) / kSecondNs);
  if (target.level_ == TACHO_SHED_NOTHING) {
    if (target.left_s_ >= 2 * hold_s) {
      target.hold_s_ = 0;
    }
    return;
  }
  if (target.calm_s_ < hold_s || (!quiet && second.room_ns < own)) {
    return;
  }
  second.room_ns -= own;
  if (target.quiet_s_ >= hold_s) {
    target.level_ = TACHO_SHED_NOTHING;
    target.passed_ = 0;
  } else {
    target.lower();
  }
  target.forget_calm();
  target.hold_s_ = hold_s;
  target.left_s_ = 0;
}

void Shedding::judge_machine(std::span<const Step> steps, const Second& second) {
  if (second.all_ns <= second.machine_ns) {
    machine_above_ = 0;
    return;
  }
  if (++machine_above_ < kConfirmations) {
    return;
  }
  machine_above_ = 0;
  std::vector<const Step*> by_cost;
  for (const Step& step : steps) {
    if (static_cast<double>(step.input.own_ns) >= second.least_ns) {
      by_cost.push_back(&step);
    }
  }
  std::ranges::stable_sort(by_cost, std::ranges::greater{}, [](const Step* step) { return step->input.own_ns; });
  double to_save = second.all_ns - second.machine_ns;
  for (const Step* step : by_cost) {
    if (to_save <= 0) {
      break;
    }
    step->target->raise(step->input, second.all_ns / second.machine_ns);
    if (!step->target->exhausted()) {
      to_save -= kExpectedSaving * static_cast<double>(step->input.own_ns);
    }
  }
}

std::vector<std::size_t> Shedding::run(std::span<const Step> steps, const config::Limits& limits,
                                       std::uint64_t elapsed_ns, double cpus) {
  const auto elapsed = static_cast<double>(elapsed_ns);
  Second second{.limits = limits,
                .elapsed_s = elapsed / kSecondNs,
                .least_ns = kLeastCost * elapsed,
                .machine_ns = limits.machine_overhead.hundredths > 0 ? limits.machine_overhead.share() * cpus * elapsed
                                                                     : kForever};
  std::vector<ShedLevel> before;
  for (const Step& step : steps) {
    second.all_ns += static_cast<double>(step.input.own_ns);
    before.push_back(step.target->level_);
  }
  second.room_ns = kRoom * second.machine_ns - second.all_ns;
  if (limits.held_shed_level || (limits.overhead.hundredths == 0 && limits.machine_overhead.hundredths == 0)) {
    for (const Step& step : steps) {
      *step.target = Shed();
      step.target->level_ = static_cast<ShedLevel>(limits.held_shed_level.value_or(TACHO_SHED_NOTHING));
    }
    machine_above_ = 0;
  } else {
    for (const Step& step : steps) {
      judge(step, second);
    }
    judge_machine(steps, second);
  }
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].target->level_ != before[i]) {
      changed.push_back(i);
    }
  }
  return changed;
}

}  // namespace tacho::scrape
