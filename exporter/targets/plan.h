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

/// The order in which targets get places if there are not enough; the first first.
enum class Rank : std::uint8_t { configured, container, service, loose };

/// A target that should exist. Its labels are its identity, so a container that is restarted under the same name
/// continues the same series.
struct DesiredTarget {
  std::string name;
  Labels labels;                      ///< the target label first
  std::set<std::uint64_t> cgroups;    ///< ids, descendants included
  std::set<std::uint32_t> processes;  ///< thread groups that belong to it whatever their cgroup
  TargetSettings settings;
  CgroupIdentity identity;  ///< of the cgroup that made it a target; path empty for processes
  bool discovered = false;  ///< not configured: a process listens there, or did
  bool drains = false;      ///< discovered by its cgroup, in which no process listens any more
  ContainerName container = {};
  Workload workload = {};  ///< of the container's pod
  std::string node = {};
  Rank rank = Rank::configured;
  std::string owner = {};  ///< number of the ordinary user who made it a target; a user's places are limited
  Labels mark = {};        ///< the labels that distinguish it from another living target
};

/// The targets that were discovered before. A target begins with a listener, but does not end with it: a server that
/// drains closes it first, and one that restarts has none yet.
struct Earlier {
  std::map<std::uint32_t, std::string> processes{};  ///< by tgid: the names of the targets that they are part of
  std::set<std::string> cgroups{};                   ///< paths
  std::set<std::string> templates{};                 ///< those of them that stand for all instances of a template
  /// Whether there is a process in such a cgroup; called only where no process listens.
  std::function<bool(const std::string&)> inhabited = [](const std::string&) { return true; };
  std::map<std::string, Labels> marks{};  ///< by path: the labels that distinguished targets from others
};

/// The rules of a configuration for targets, compiled once.
class TargetRules {
 public:
  static Result<TargetRules> compile(const config::Config& config);

  /// The targets that should exist, given the world. An existing target stays one.
  [[nodiscard]] std::vector<DesiredTarget> plan(const World& world, const Earlier& earlier) const;

  /// Names of configured entries that match nothing in `targets`.
  [[nodiscard]] std::vector<std::string> absent(const std::vector<DesiredTarget>& targets) const;

  /// Whether the plan depends on the listening sockets of the machine.
  [[nodiscard]] bool needs_listeners() const;
  /// Whether any executed program may become a target.
  [[nodiscard]] bool needs_executions() const;
  /// Whether some target leaves clients out.
  [[nodiscard]] bool excludes_clients() const;
  /// Whether some target is tacho's own pod or cgroup; with `scope`, whether it is that one.
  [[nodiscard]] bool needs_self() const;
  [[nodiscard]] bool needs_self(config::SelfScope scope) const;
  /// Whether the machine's cgroups have to be read. The kernel reports those around tacho by itself.
  [[nodiscard]] bool needs_cgroup_tree() const;

 private:
  struct Rule {
    config::TargetRule entry;
    std::vector<config::Glob> cgroup;     // none or one
    std::vector<config::Glob> container;  // none or one, as the next ones
    std::vector<config::Glob> namespace_;
    std::vector<config::Glob> pod;
    std::vector<config::Glob> executable;
    bool many = false;  // several cgroups may match: their identities distinguish them

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
  TargetSettings discovered_;  // of targets that are not configured
  bool discovers_ = false;
};

}  // namespace tacho::targets
