#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bpf/lib/targets.h"
#include "kernel/bpf_object.h"
#include "kernel/map.h"
#include "kernel/mapped_array.h"
#include "targets/target_settings.h"

namespace tacho::targets {

/// The kernel's side of the targets: the cgroups and processes of each index (bpf/lib/targets.bpf.h).
class TargetMaps {
 public:
  /// @param indices how many target indices there are
  static Result<TargetMaps> open(const kernel::BpfObject& object, std::size_t indices);

  /// Sets the idle limit: a longer gap between operations is not counted as an interval.
  void set_idle_limit(std::uint64_t nanoseconds);
  /// Sets the cgroup below which the kernel lists all cgroups, of those around tacho; 0: none.
  void set_self_top(std::uint64_t cgroup);
  void set_watch_executions(bool on);

  /// To be called before an index is used, and when its settings change. Sockets follow with their next operation.
  void set_target(target_ref target, const TargetSettings& wanted);

  /// Sets what the programs do without for a target, see bpf/lib/targets.h.
  void set_shed(target_ref target, tacho_shed level);

  struct Assigned {
    std::size_t refused = 0;  ///< entries that were refused for the first time, mostly for lack of room
    std::string why;          ///< the last of them
    bool grew = false;        ///< a target has members that the kernel did not know, or has any again
  };
  /// Brings the kernel to exactly this membership.
  Assigned assign(const std::map<std::uint64_t, target_ref>& cgroups,
                  const std::map<std::uint32_t, target_ref>& processes);

  /// Places of cgroups, by parent and name. The next cgroup that is made there belongs to the target from its
  /// beginning.
  using Awaited = std::map<std::pair<std::uint64_t, std::string>, target_ref>;
  void await(const Awaited& wanted);

  /// To be called before and after a full scan of the machine. Entries that the kernel let children inherit, without an
  /// event, are removed if they were there before the scan and the scan did not find them. The filters lose the bits of
  /// removed entries.
  void begin_look();
  void end_look(const std::function<bool(std::uint32_t)>& is_process);

  /// A process has exited or executed another program. Children to which the kernel let it pass on its target are known
  /// only in the kernel's map.
  void forget_process(std::uint32_t tgid);

  /// Sets whether some target leaves clients out: then the client of every connection is noted, whatever server it
  /// connects to.
  void set_client_rules(bool on);

  /// Sets whether process look-ups are needed: they cost every unwatched event a look-up.
  void set_process_rules(bool on);

 private:
  template <class Key>
  static void assign(const kernel::Map<Key, target_ref>& map, std::map<Key, target_ref>& mirror, std::set<Key>& refused,
                     const std::map<Key, target_ref>& wanted, Assigned& result, bool& changed);
  void mark_members();
  void renew_filter();
  void publish();
  void publish_shed();
  /// The indices of targets that have members.
  [[nodiscard]] std::set<std::uint32_t> indices() const;

  kernel::MappedArray rules_;
  kernel::MappedArray settings_;
  kernel::Map<std::uint64_t, target_ref> cgroup_map_;
  kernel::Map<std::uint32_t, target_ref> process_map_;
  kernel::Map<awaited_cgroup, target_ref> awaited_map_;
  Awaited awaited_;
  std::vector<std::uint64_t> older_cgroups_;  // in the kernel's maps when the look began
  std::vector<std::uint32_t> older_processes_;
  std::map<std::uint64_t, target_ref> cgroups_;
  std::map<std::uint32_t, target_ref> processes_;
  std::set<std::uint32_t> inhabited_;
  std::set<std::uint32_t> deserted_;          ///< indices that had members once
  std::map<std::uint32_t, tacho_shed> shed_;  // by index, of targets that do without something
  std::set<std::uint64_t> refused_cgroups_;   // for which there was no room
  std::set<std::uint32_t> refused_processes_;
};

}  // namespace tacho::targets
