#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "config/glob.h"
#include "targets/cgroup_path.h"
#include "targets/labels.h"
#include "targets/target_settings.h"
#include "targets/workload.h"
#include "targets/world.h"

namespace tacho::targets {

/// Who has a place when there are not enough; the first first.
enum class Rank : std::uint8_t { configured, container, service, loose };

/// A target as it should be: its labels are its identity, so a container that is restarted under the same name goes on
/// counting in the same series.
struct DesiredTarget {
  std::string name;
  Labels labels;                      ///< the target label first
  std::set<std::uint64_t> cgroups;    ///< ids, descendants included
  std::set<std::uint32_t> processes;  ///< thread groups that belong to it whatever their cgroup
  TargetSettings settings;
  CgroupIdentity identity;  ///< of the cgroup that made it a target; path empty for processes
  bool discovered = false;  ///< nobody named it: somebody listens there, or did
  bool drains = false;      ///< discovered by its cgroup, in which nobody listens any more
  ContainerName container = {};
  Workload workload = {};  ///< of the container's pod
  std::string node = {};
  Rank rank = Rank::configured;
  std::string owner = {};  ///< number of the ordinary user who has made it a target, whose places are limited
  Labels mark = {};        ///< those of the labels that tell it apart from another living one
};

/// What was discovered before. It takes a listener to become a target, but not to stay one: a server that drains closes
/// it first, and one that is started again has none yet.
struct Earlier {
  std::map<std::uint32_t, std::string> processes{};  ///< by tgid: the names of the targets that they are part of
  std::set<std::string> cgroups{};                   ///< paths
  std::set<std::string> templates{};                 ///< those of them that stand for all instances of a template
  /// Whether there is anybody in such a cgroup; asked only where nobody listens.
  std::function<bool(const std::string&)> inhabited = [](const std::string&) { return true; };
  std::map<std::string, Labels> marks{};  ///< by path: what told targets apart from others
};

/// What a configuration says about targets, compiled once.
class TargetRules {
 public:
  static Result<TargetRules> compile(const config::Config& config);

  /// Which targets there should be, given the world; what was a target stays what it was.
  [[nodiscard]] std::vector<DesiredTarget> plan(const World& world, const Earlier& earlier) const;

  /// Names of configured entries that match nothing in `targets`.
  [[nodiscard]] std::vector<std::string> absent(const std::vector<DesiredTarget>& targets) const;

  /// Whether the plan depends on the listening sockets of the machine.
  [[nodiscard]] bool needs_listeners() const;
  /// Whether every executed program may make a target.
  [[nodiscard]] bool needs_executions() const;
  /// Whether some target leaves clients out.
  [[nodiscard]] bool excludes_clients() const;
  /// Whether some target is tacho's own pod or cgroup; with `scope`, whether it is that one.
  [[nodiscard]] bool needs_self() const;
  [[nodiscard]] bool needs_self(config::SelfScope scope) const;
  /// Whether the machine's cgroups have to be known: tacho's own alone are told by the kernel.
  [[nodiscard]] bool needs_cgroup_tree() const;

 private:
  struct Rule {
    config::TargetRule entry;
    std::vector<config::Glob> cgroup;     // none or one
    std::vector<config::Glob> container;  // none or one, as the next ones
    std::vector<config::Glob> namespace_;
    std::vector<config::Glob> pod;
    std::vector<config::Glob> executable;
    bool many = false;  // several cgroups may match: what they are tells them apart

    Result<void> compile();
  };
  struct CgroupOwners;

  void plan_cgroups(const World& world, std::vector<DesiredTarget>& targets, CgroupOwners& owners) const;
  void plan_processes(const World& world, const Earlier& earlier, std::vector<DesiredTarget>& targets) const;
  void plan_listeners(const World& world, const Earlier& earlier, std::vector<DesiredTarget>& targets,
                      CgroupOwners& owners) const;
  [[nodiscard]] bool selects(const Rule& rule, const ContainerName& name) const;
  [[nodiscard]] bool selects(const Rule& rule, const std::string& path, const ContainerName* container,
                             const World& world) const;
  [[nodiscard]] bool is_system_namespace(const ContainerName& name) const;
  [[nodiscard]] bool excluded(const std::string& path) const;

  std::vector<Rule> rules_;
  std::vector<config::Glob> exclude_;
  std::vector<config::Glob> exclude_namespaces_;
  config::ContainerLabels labels_;
  TargetSettings discovered_;  // of what nobody has named
  bool discovers_ = false;
};

}  // namespace tacho::targets
