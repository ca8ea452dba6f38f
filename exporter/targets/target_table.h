#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
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
    ended,    ///< gone from the machine; reported until every reader has its last values
    resting,  ///< retired: no longer reported, retained for a while in case it comes back
  };
  target_ref ref{};
  DesiredTarget wanted;
  State state = State::live;
  Time ended{};
  bool counts = false;  ///< the kernel knows its members: its counts are complete
};

/// Follows the additions and removals of targets: the probes' accumulators.
class TargetObserver {
 public:
  virtual ~TargetObserver() = default;
  virtual Result<void> target_added(const Target& target) = 0;
  virtual void target_removed(const Target& target) = 0;
  /// Whether the target has answered a request in the last minutes. A target that has not gives way first.
  [[nodiscard]] virtual bool has_answered(const Target& target) const = 0;
  /// Called after a number of additions and removals, before the kernel gets the members of the new targets. It waits
  /// for the kernel. After an error it is called again, every second.
  virtual Result<void> targets_changed() = 0;
  /// Called when the kernel has the members of all targets, which may be published from then on.
  virtual void targets_known() = 0;
};

/// The targets and their dense indices. Index 0 is `other`, for everything beyond max_targets. An index is used again
/// only with a new epoch, so that nothing is misattributed that the kernel remembers of its former owner.
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
    bool postponed = false;         ///< only places of targets that ended just now are left: apply() is to be repeated
    std::vector<std::string> came;  ///< names of targets that are new or back
    std::vector<std::string> went;  ///< … that ended
    std::vector<std::string> failures;  ///< targets that could not be added, and why
  };
  /// Makes the live targets those wanted. A target that ended or is retired, and comes back under the same labels,
  /// continues its counters. New targets take descriptors until the observer has handed them to the kernel: `most` of
  /// them are added, the others wait for add_waiting(). A target that takes the place of another waits, too: first the
  /// kernel gets the changed membership.
  Changes apply(std::vector<DesiredTarget> wanted, Time now, TargetObserver& observer,
                std::size_t most = std::numeric_limits<std::size_t>::max());
  Changes add_waiting(Time now, TargetObserver& observer, std::size_t most);
  [[nodiscard]] bool has_waiting() const { return !waiting_.empty() || !successors_.empty(); }

  /// Retires the targets that ended before `seen`, or have waited for their readers for too long. Evicts those that
  /// were retired for too long, or are too many. @return whether any was evicted
  bool release_ended(Time seen, Time now, TargetObserver& observer);

  /// The kernel knows the members of the targets that were added.
  void all_count();

  /// Live and ended targets that count, `other` first if it is in use. Retired ones are left out.
  [[nodiscard]] std::vector<const Target*> targets() const;
  /// The first indices that no target has.
  [[nodiscard]] std::vector<std::uint32_t> vacant(std::size_t most) const;
  /// Also the retired targets, and those that do not count yet.
  [[nodiscard]] std::vector<const Target*> all() const;
  [[nodiscard]] std::size_t live() const;

  /// Membership for the kernel, overflow mapped to `other`.
  [[nodiscard]] std::map<std::uint64_t, target_ref> cgroups() const;
  [[nodiscard]] std::map<std::uint32_t, target_ref> processes() const;
  /// Whether a target has this process, and no other one that is there.
  [[nodiscard]] bool is_last(std::uint32_t tgid, const std::function<bool(std::uint32_t)>& is_there) const;

  /// Targets without a place that went into `other`, in all.
  [[nodiscard]] std::uint64_t overflowed() const { return overflowed_; }

  /// The failures of discovery, in all.
  struct Shortfalls {
    std::uint64_t failed = 0;     ///< additions of targets
    std::uint64_t refused = 0;    ///< members for which the kernel's maps had no room
    std::uint64_t cgroups = 0;    ///< scans of the cgroups that failed
    std::uint64_t processes = 0;  ///< … at the processes
    std::uint64_t listeners = 0;  ///< … at the listening sockets
  };
  [[nodiscard]] Shortfalls& shortfalls() { return shortfalls_; }
  [[nodiscard]] const Shortfalls& shortfalls() const { return shortfalls_; }

 private:
  /// The number of places of each ordinary user: one user's targets must not take all.
  using Shares = std::map<std::string, std::size_t>;
  [[nodiscard]] std::size_t largest_share() const;
  /// The target that gives its place to another: one of a lower rank, or an idle one of a user who has more places.
  [[nodiscard]] Target* weaker_than(const DesiredTarget& wanted, const TargetObserver& observer) const;
  /// A target that gave way is in `other` from now on.
  void vacate(Target& target, Time now, Changes& changes, TargetObserver& observer);
  void add_successors(Changes& changes, TargetObserver& observer);
  void add(std::unique_ptr<Target>& slot, DesiredTarget wanted, Changes& changes, TargetObserver& observer);
  void put_into_other(DesiredTarget wanted, Changes& changes, TargetObserver& observer);
  [[nodiscard]] bool has_ended_ones() const;
  /// @param occupied all places before this one are; moved on to the one that is found
  std::unique_ptr<Target>* free_slot(std::size_t& occupied, Time now, TargetObserver& observer);
  void overflow(DesiredTarget wanted, Changes& changes, TargetObserver& observer);
  void remove(std::unique_ptr<Target>& slot, TargetObserver& observer);
  std::unique_ptr<Target>* oldest_of(Target::State state, Time before);

  std::vector<std::unique_ptr<Target>> slots_;  // by index
  std::vector<std::uint32_t> epochs_;           // latest of each index
  std::deque<DesiredTarget> waiting_;
  std::map<std::uint32_t, DesiredTarget> successors_;  // by the index that another has given up in the last step
  Shares shares_;
  std::set<Labels> overflow_;  // labels of the targets in `other`
  std::set<Labels> overflowed_before_;
  Shortfalls shortfalls_;
  std::uint64_t overflowed_ = 0;
};

}  // namespace tacho::targets
