#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "base/result.h"
#include "config/config.h"
#include "kernel/bpf_object.h"
#include "kernel/ring_buffer.h"
#include "targets/cgroup_tree.h"
#include "targets/container_names.h"
#include "targets/plan.h"
#include "targets/target_maps.h"
#include "targets/target_news.h"
#include "targets/target_table.h"
#include "targets/world.h"

namespace tacho::targets {

/// The paths that discovery reads; replaced in tests and when /proc of the host is mounted elsewhere.
struct Paths {
  std::string procfs = "/proc";
  std::string cgroupfs;    ///< mount of cgroup v2; empty where only `self` is selected
  bool cgroup_v1 = false;  ///< that mount is of cgroup v1
  NameSources names;
  std::string node;  ///< name of the machine in Kubernetes; empty if unknown
};

/// Keeps the table of targets and the kernel's look-up maps in line with the machine: by a full scan at the start and
/// every half minute, and by single events in between. Used by one thread, the owner of the table.
class Discovery {
 public:
  static Result<std::unique_ptr<Discovery>> start(const config::Config& config, const kernel::BpfObject& object,
                                                  Paths paths, TargetTable& table, TargetObserver& observer);

  /// Descriptor that becomes readable when the kernel has reported events; −1 without a ring buffer.
  [[nodiscard]] int descriptor() const;
  /// Takes the reported events.
  void consume();
  /// Does what is due. @return the latest time for the next call
  Time run(Time now);

  /// To be called after targets were evicted: their cgroups are not awaited any more.
  void targets_freed() { await_comebacks(); }

  /// Sets what the programs do without for a target.
  void set_shed(target_ref target, tacho_shed level) { maps_.set_shed(target, level); }

  /// Applies other rules; targets that stay keep their counters.
  Result<void> reconfigure(const config::Config& config);

  /// Called after targets were added, to find sockets and threads that are older than the targets.
  void on_added(std::function<void()> callback) { on_added_ = std::move(callback); }
  /// Called after each full scan, to find what hooks have missed.
  void on_looked(std::function<void()> callback) { on_looked_ = std::move(callback); }

  /// Configured targets that match nothing; on any thread.
  [[nodiscard]] std::vector<std::string> absent() const { return absent_.get(); }

 private:
  Discovery(const kernel::BpfObject& object, Paths paths, TargetTable& table, TargetObserver& observer,
            TargetMaps maps);
  void handle(const target_event& event);
  void handle_cgroup(const target_event& event);
  void handle_listener(const target_event& event);
  void handle_process(const target_event& event);
  /// Whether /proc numbers processes as the kernel's lists and events do.
  [[nodiscard]] bool procfs_is_of_kernel() const;
  /// Reads a process and its ancestors. @return whether /proc had them
  bool know_process(std::uint32_t tgid);
  void forget_dead_listeners();
  void expect_heirs();
  [[nodiscard]] Earlier earlier(Time now);
  void look_at_drains(Time now);
  Result<void> look_at_own_cgroups();
  void keep_below_refusals(CgroupWalk& walk);
  void report(std::uint64_t TargetTable::Shortfalls::* subject, const Error& error);
  void look_at_everything();
  void look_at_processes();
  void look_at_names(Time now);
  void replan(Time now);
  void apply(std::vector<DesiredTarget> wanted, Time now);
  void await_comebacks();
  void schedule(Time when);

  const kernel::BpfObject& object_;
  Paths paths_;
  TargetTable& table_;
  TargetObserver& observer_;
  TargetMaps maps_;
  std::optional<TargetRules> rules_;
  std::optional<kernel::RingBuffer> ring_;
  World world_;
  ContainerNames names_;
  Time names_wanted_until_{};
  Time next_names_look_{};
  std::map<std::uint32_t, std::string> known_;  // names of the targets that processes are part of
  std::map<std::string, Time> born_;            // cgroups made a moment ago, into which processes may be about to move
  std::set<std::string> templates_;             // slices in which connections had services of their own
  std::vector<std::string> draining_;           // cgroups of targets in which no process listens any more
  TargetNews news_;
  std::size_t live_ = 0;
  std::function<void()> on_added_;
  std::function<void()> on_looked_;
  Guarded<std::vector<std::string>> absent_;
  std::set<std::string> reported_absent_;
  RateLimited problems_;
  std::uint64_t seen_ring_losses_ = 0;
  bool everything_due_ = true;
  bool processes_due_ = true;
  bool looked_ = false;                  // a full scan of which the kernel does not know yet
  std::set<std::uint64_t> left_behind_;  // listening sockets of who exited, that may be open elsewhere
  bool began_ = false;                   // a listener to plan for before the next look at the processes
  bool heirs_due_ = false;               // the last known process of a target is gone: no plan before that look
  Time last_plan_{};
  Time next_plan_ = Time::max();
  Time next_full_look_{};
  Time next_look_{};          // at everything, not before
  Time next_process_look_{};  // not before
  Time next_idle_look_ = Time::max();
  bool look_put_off_ = false;  // the next look is not put off again
  Time next_drain_look_ = Time::max();
};

}  // namespace tacho::targets
