#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "bpf/lib/targets.h"
#include "targets/plan.h"

namespace tacho::targets {

using Time = std::chrono::steady_clock::time_point;

/// A target with a place in the kernel.
struct Target {
  enum class State : std::uint8_t {
    live,
    ended,    ///< gone from the machine; its last values are still to be scraped once
    resting,  ///< and have been; shown no more, kept for a while in case it comes back
  };
  target_ref ref{};
  DesiredTarget wanted;
  State state = State::live;
  Time ended{};
};

/// What has to follow when targets come and go: the probes' accumulators.
class TargetObserver {
 public:
  virtual ~TargetObserver() = default;
  virtual Result<void> target_added(const Target& target) = 0;
  virtual void target_removed(const Target& target) = 0;
  /// Whether it has answered a request in the last minutes; who has not gives way first.
  [[nodiscard]] virtual bool has_answered(const Target& target) const = 0;
  /// After a number of additions and removals, before the kernel is told who belongs to the new targets.
  virtual Result<void> targets_changed() = 0;
};

/// The targets and their dense indices. Index 0 is `other`, for everything beyond max_targets. An index is used again
/// only with a new epoch, so that what the kernel remembers of its former owner is never charged to the new one.
class TargetTable {
 public:
  static constexpr std::uint32_t kOther = 0;
  /// A container that is restarted takes longer than a scrape interval; a crash loop's back-off is five minutes.
  static constexpr auto kLongestRest = std::chrono::minutes(10);

  /// @param max_targets beside `other`
  explicit TargetTable(std::size_t max_targets);

  /// Kernel memory and probes are sized for this many indices.
  [[nodiscard]] std::size_t indices() const { return slots_.size(); }

  struct Changes {
    std::size_t added = 0;
    std::size_t ended = 0;
    std::vector<std::string> came;      ///< names of targets that are new or back
    std::vector<std::string> went;      ///< … that ended
    std::vector<std::string> failures;  ///< targets that could not be added, and why
  };
  /// Makes the live targets those wanted. A target that ended or rests and comes back under the same labels goes on
  /// counting.
  Changes apply(std::vector<DesiredTarget> wanted, Time now, TargetObserver& observer);

  /// Lays the targets to rest that ended and whose last values have been scraped, or that have waited for a scrape too
  /// long; frees those that have rested too long, or are too many.
  Result<void> release_ended(bool scraped, Time now, TargetObserver& observer);

  /// Live and ended targets, `other` first if it is in use. Those that rest are left out.
  [[nodiscard]] std::vector<const Target*> targets() const;
  /// Those that rest, too.
  [[nodiscard]] std::vector<const Target*> all() const;
  [[nodiscard]] std::size_t live() const;

  /// Membership for the kernel, overflow mapped to `other`.
  [[nodiscard]] std::map<std::uint64_t, target_ref> cgroups() const;
  [[nodiscard]] std::map<std::uint32_t, target_ref> processes() const;

  /// Targets that had no place and went into `other`, in all.
  [[nodiscard]] std::uint64_t overflowed() const { return overflowed_; }

 private:
  /// The places of ordinary users' own: what one of them starts must not take all.
  using Shares = std::map<std::string, std::size_t>;
  [[nodiscard]] std::size_t largest_share() const;
  /// The target that gives its place to another: of a lower rank, or of a user who has more, if it has no use for it.
  std::unique_ptr<Target>* weaker_than(const DesiredTarget& wanted, const Shares& shares,
                                       const TargetObserver& observer);
  Result<Target*> add(DesiredTarget wanted, TargetObserver& observer);
  void put_into_other(DesiredTarget wanted, const std::vector<Labels>& before, Changes& changes,
                      TargetObserver& observer);
  Target* find(const Labels& labels);
  std::unique_ptr<Target>* free_slot(TargetObserver& observer);
  void overflow(DesiredTarget wanted, Changes& changes, TargetObserver& observer);
  void remove(std::unique_ptr<Target>& slot, TargetObserver& observer);
  std::unique_ptr<Target>* oldest_of(Target::State state);

  std::vector<std::unique_ptr<Target>> slots_;  // by index
  std::vector<std::uint32_t> epochs_;           // latest of each index
  std::vector<Labels> overflow_;                // labels of the targets in `other`
  std::uint64_t overflowed_ = 0;
};

}  // namespace tacho::targets
