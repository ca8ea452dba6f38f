#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/result.h"
#include "bpf/lib/targets.h"
#include "kernel/bpf_object.h"
#include "kernel/mapped_array.h"
#include "targets/target_settings.h"

namespace tacho::targets {

/// The kernel's side of the targets: who belongs to which index (bpf/lib/targets.bpf.h).
class TargetMaps {
 public:
  /// @param indices how many target indices there are
  static Result<TargetMaps> open(const kernel::BpfObject& object, std::size_t indices);

  /// How long a gap between operations may be to count as an interval.
  void set_idle_limit(std::uint64_t nanoseconds);
  /// Below which cgroup the kernel lists all others, of those around tacho; 0: none.
  void set_self_top(std::uint64_t cgroup);
  void set_watch_executions(bool on);

  /// Before an index is used, and when its settings change.
  void set_target(target_ref target, const TargetSettings& wanted);

  struct Assigned {
    std::size_t refused = 0;  ///< entries that the kernel had no room for
    bool grew = false;        ///< somebody belongs to a target now whom the kernel did not know of
  };
  /// Brings the kernel to exactly this membership.
  Assigned assign(const std::map<std::uint64_t, target_ref>& cgroups,
                  const std::map<std::uint32_t, target_ref>& processes);

  /// A process has exited or executed something else; children that the kernel let inherit are known only there.
  void forget_process(std::uint32_t tgid);

  /// Says whether process look-ups are needed at all: they cost every unwatched event a look-up.
  void set_process_rules(bool on);

 private:
  template <class Key>
  static void assign(int map, std::map<Key, target_ref>& mirror, const std::map<Key, target_ref>& wanted,
                     Assigned& result, bool& changed);
  void rebuild_filter();
  void publish();

  kernel::MappedArray rules_;
  kernel::MappedArray settings_;
  int cgroup_map_ = -1;
  int process_map_ = -1;
  std::map<std::uint64_t, target_ref> cgroups_;
  std::map<std::uint32_t, target_ref> processes_;
};

}  // namespace tacho::targets
