#include "targets/plan.h"

#include <algorithm>
#include <cerrno>

#include "targets/listener_groups.h"
#include "targets/self.h"

namespace tacho::targets {
namespace {

bool has_wildcard(const std::string& glob) {
  return glob.find_first_of("*?[") != std::string::npos;
}

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

Result<void> compile_into(const std::optional<std::string>& pattern, std::vector<config::Glob>& globs) {
  if (!pattern) {
    return {};
  }
  auto glob = config::Glob::compile(*pattern);
  if (!glob) {
    return std::unexpected(glob.error());
  }
  globs.push_back(std::move(*glob));
  return {};
}

TargetSettings settings_of(const config::TargetRule& entry) {
  return {.ports = entry.ports, .http2 = entry.http2};
}

/// Whether somebody who listens on this is a server worth a target of its own. In units and containers a listening unix
/// socket is enough, except for the plumbing of the system itself; elsewhere too many helpers have one.
bool makes_target(const Listener& listener, const CgroupIdentity& identity) {
  if (listener.kind != TACHO_LISTENER_UNIX) {
    return is_server_socket(listener);
  }
  return identity.kind == CgroupIdentity::Kind::container ||
         (identity.kind == CgroupIdentity::Kind::unit && !identity.unit.starts_with("systemd-") &&
          !identity.unit.starts_with("dbus"));
}

/// Whether a pattern names a cgroup. The root has no name of its own: "/*" and "/**" mean what is below it.
bool names(const config::Glob& glob, const std::string& path) {
  return path == "/" ? glob.pattern() == "/" : glob.matches(path);
}

/// What is known of the container that a cgroup is; nullptr for cgroups inside one and all others.
const ContainerName* container_at(const CgroupIdentity& identity, const std::string& path, const World& world) {
  if (identity.kind != CgroupIdentity::Kind::container || identity.path != path) {
    return nullptr;
  }
  const auto known = world.names.find(identity.container_id);
  return known == world.names.end() ? nullptr : &known->second;
}

/// Targets with the same labels are one: containers of a workload whose pods are not told apart, or an old and a new
/// container of one name.
void merge_equal(std::vector<DesiredTarget>& targets) {
  std::map<Labels, std::size_t> first;
  std::vector<DesiredTarget> merged;
  for (DesiredTarget& target : targets) {
    const auto [at, added] = first.emplace(target.labels, merged.size());
    if (added) {
      merged.push_back(std::move(target));
    } else {
      merged[at->second].cgroups.merge(target.cgroups);
      merged[at->second].processes.merge(target.processes);
    }
  }
  targets = std::move(merged);
}

}  // namespace

/// Which target each cgroup belongs to.
struct TargetRules::CgroupOwners {
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::map<std::string, std::size_t> target;         // path → index into the targets, kNone
  std::map<std::uint64_t, const std::string*> path;  // id → path
  std::vector<std::size_t> rule;                     // of each target

  [[nodiscard]] std::size_t of(const std::string& cgroup) const {
    const auto found = target.find(cgroup);
    return found == target.end() ? kNone : found->second;
  }
};

Result<void> TargetRules::Rule::compile() {
  many = entry.container.has_value() || (entry.cgroup && has_wildcard(*entry.cgroup)) ||
         entry.self == config::SelfScope::pod;
  const config::ContainerSelector container_wanted = entry.container.value_or(config::ContainerSelector{});
  for (const auto& [pattern, globs] :
       {std::pair(entry.cgroup, &cgroup), std::pair(container_wanted.name, &container),
        std::pair(container_wanted.namespace_, &namespace_), std::pair(container_wanted.pod, &pod),
        std::pair(entry.process ? entry.process->exe : std::nullopt, &executable)}) {
    if (auto done = compile_into(pattern, *globs); !done) {
      return done;
    }
  }
  return {};
}

bool TargetRules::selects(const Rule& rule, const ContainerName& name) const {
  const auto matches = [](const std::vector<config::Glob>& globs, const std::string& text) {
    return globs.empty() || globs.front().matches(text);
  };
  // System namespaces have to be asked for.
  return matches(rule.container, name.container) && matches(rule.pod, name.pod) &&
         matches(rule.namespace_, name.namespace_) && (!rule.namespace_.empty() || !is_system_namespace(name));
}

bool TargetRules::selects(const Rule& rule, const std::string& path, const ContainerName* container,
                          const World& world) const {
  if (rule.entry.self) {
    return *rule.entry.self == config::SelfScope::pod ? is_container_of_own_pod(path, world.own_cgroup)
                                                      : path == world.own_cgroup;
  }
  return rule.entry.container ? container != nullptr && selects(rule, *container)
                              : !rule.cgroup.empty() && names(rule.cgroup.front(), path);
}

bool TargetRules::is_system_namespace(const ContainerName& name) const {
  return std::ranges::any_of(exclude_namespaces_,
                             [&name](const config::Glob& glob) { return glob.matches(name.namespace_); });
}

Result<TargetRules> TargetRules::compile(const config::Config& config) {
  TargetRules rules;
  for (const config::TargetRule& entry : config.targets) {
    Rule rule;
    rule.entry = entry;
    if (auto done = rule.compile(); !done) {
      return std::unexpected(done.error().within("target " + entry.name));
    }
    rules.rules_.push_back(std::move(rule));
  }
  for (const auto& [patterns, globs, key] :
       {std::tuple(&config.discovery.exclude, &rules.exclude_, "discovery.exclude"),
        std::tuple(&config.discovery.exclude_namespaces, &rules.exclude_namespaces_, "discovery.exclude_namespaces")}) {
    for (const std::string& pattern : *patterns) {
      if (auto done = compile_into(pattern, *globs); !done) {
        return std::unexpected(done.error().within(key));
      }
    }
  }
  rules.labels_ = config.labels;
  rules.discovers_ = config.discovery.listeners == config::Listeners::always ||
                     (config.discovery.listeners == config::Listeners::automatic && config.targets.empty());
  return rules;
}

bool TargetRules::needs_listeners() const {
  return discovers_ || std::ranges::any_of(rules_, [](const Rule& r) { return r.entry.process.has_value(); });
}

bool TargetRules::needs_executions() const {
  return std::ranges::any_of(rules_, [](const Rule& r) { return r.entry.process && !r.entry.process->port; });
}

bool TargetRules::needs_self() const {
  return std::ranges::any_of(rules_, [](const Rule& r) { return r.entry.self.has_value(); });
}

bool TargetRules::needs_self(config::SelfScope scope) const {
  return std::ranges::any_of(rules_, [scope](const Rule& r) { return r.entry.self == scope; });
}

bool TargetRules::needs_cgroup_tree() const {
  return discovers_ || std::ranges::any_of(rules_, [](const Rule& r) { return !r.entry.self.has_value(); });
}

bool TargetRules::excluded(const std::string& path) const {
  for (std::string at = path;; at = parent_of(at)) {
    if (std::ranges::any_of(exclude_, [&at](const config::Glob& glob) { return names(glob, at); })) {
      return true;
    }
    if (at == "/") {
      return false;
    }
  }
}

void TargetRules::plan_cgroups(const World& world, std::vector<DesiredTarget>& targets, CgroupOwners& owners) const {
  // A path sorts before all paths below it, so that a parent's owner is known first.
  for (const auto& [path, id] : world.cgroups) {
    std::size_t owner = path == "/" ? CgroupOwners::kNone : owners.of(parent_of(path));
    const CgroupIdentity identity = identify(path);
    const ContainerName* const container = container_at(identity, path, world);
    for (std::size_t r = 0; r < rules_.size(); ++r) {
      const Rule& rule = rules_[r];
      if (!selects(rule, path, container, world)) {
        continue;
      }
      if (owner == CgroupOwners::kNone || owners.rule[owner] != r) {
        DesiredTarget target{rule.entry.name, labels_of(rule.entry), {}, {}, settings_of(rule.entry), identity};
        target.identity.path = path;
        if (container != nullptr) {
          add_container(target.labels, *container);
        } else if (rule.many && rule.entry.self && !identity.container_id.empty()) {
          target.labels.emplace_back("container_id", identity.container_id);
        } else if (rule.many) {
          target.labels.emplace_back("cgroup", path);
        }
        owner = targets.size();
        targets.push_back(std::move(target));
        owners.rule.push_back(r);
      }
      break;
    }
    owners.target[path] = owner;
    if (owner != CgroupOwners::kNone) {
      targets[owner].cgroups.insert(id);
    }
  }
}

void TargetRules::plan_processes(const World& world, const Earlier& earlier,
                                 std::vector<DesiredTarget>& targets) const {
  std::set<std::uint32_t> taken;
  for (const Rule& rule : rules_) {
    if (!rule.entry.process) {
      continue;
    }
    const config::ProcessSelector& wanted = *rule.entry.process;
    DesiredTarget target{rule.entry.name, labels_of(rule.entry), {}, {}, settings_of(rule.entry), {}};
    for (const auto& [tgid, process] : world.processes) {
      if (taken.contains(tgid) || (!rule.executable.empty() && !rule.executable.front().matches(process.executable))) {
        continue;
      }
      const auto listens = [&](std::uint32_t who) {
        return std::ranges::any_of(world.listeners,
                                   [&](const Listener& l) { return l.tgid == who && l.port == *wanted.port; });
      };
      const auto before = earlier.processes.find(tgid);
      const bool drains = before != earlier.processes.end() && before->second == rule.entry.name;
      if (!wanted.port || drains || listens(tgid)) {
        target.processes.insert(tgid);
      }
    }
    // Workers that do not hold the listening socket themselves; a process may have a lower number than its parent.
    for (bool grown = true; grown;) {
      grown = false;
      for (const auto& [tgid, process] : world.processes) {
        const auto parent = world.processes.find(process.parent);
        grown |= parent != world.processes.end() && target.processes.contains(process.parent) &&
                 parent->second.executable == process.executable && !taken.contains(tgid) &&
                 target.processes.insert(tgid).second;
      }
    }
    taken.insert(target.processes.begin(), target.processes.end());
    if (!target.processes.empty()) {
      targets.push_back(std::move(target));
    }
  }
}

void TargetRules::plan_listeners(const World& world, const Earlier& earlier, std::vector<DesiredTarget>& targets,
                                 CgroupOwners& owners) const {
  std::set<std::uint32_t> taken;
  for (const DesiredTarget& target : targets) {
    taken.insert(target.processes.begin(), target.processes.end());
  }
  std::map<std::string, CgroupIdentity> found;
  std::vector<Listener> loose;
  for (const Listener& listener : world.listeners) {
    const auto path = owners.path.find(listener.cgroup);
    if (listener.tgid == world.own_tgid || taken.contains(listener.tgid)) {
      continue;
    }
    // A cgroup outside our view (a cgroup namespace) is like the root: its processes are told apart by themselves.
    const std::string where = path == owners.path.end() ? "/" : *path->second;
    if (owners.of(where) != CgroupOwners::kNone || excluded(where)) {
      continue;
    }
    CgroupIdentity identity = identify(where);
    const ContainerName* const container = container_at(identity, identity.path, world);
    if (!makes_target(listener, identity) || (container != nullptr && is_system_namespace(*container))) {
      continue;
    }
    if (identity.kind == CgroupIdentity::Kind::session) {
      loose.push_back(listener);
    } else {
      found.try_emplace(identity.path, std::move(identity));
    }
  }
  std::set<std::string> draining;
  for (const std::string& path : earlier.cgroups) {
    if (!world.cgroups.contains(path) || found.contains(path) || owners.of(path) != CgroupOwners::kNone ||
        excluded(path) || !earlier.inhabited(path)) {
      continue;
    }
    CgroupIdentity identity = identify(path);
    const ContainerName* const container = container_at(identity, path, world);
    if (container == nullptr || !is_system_namespace(*container)) {
      found.try_emplace(path, std::move(identity));
      draining.insert(path);
    }
  }
  // Every cgroup goes to the innermost one found around it (containers in containers).
  std::map<std::string, std::set<std::uint64_t>> members;
  for (const auto& [path, id] : world.cgroups) {
    if (owners.of(path) != CgroupOwners::kNone) {
      continue;
    }
    for (std::string at = path; at != "/"; at = parent_of(at)) {
      if (found.contains(at)) {
        members[at].insert(id);
        break;
      }
    }
  }
  for (auto& [path, identity] : found) {
    const ContainerName* const container = container_at(identity, path, world);
    const std::string name = discovered_name(identity, container);
    DesiredTarget target{name, {{"target", name}}, std::move(members[path]), {}, {}, identity, true, false};
    target.drains = draining.contains(path);
    if (container != nullptr) {
      add_container(target.labels, *container);
    }
    targets.push_back(std::move(target));
  }
  std::map<std::string, std::size_t> groups;  // by name, among the targets
  const auto group_called = [&targets, &groups](const std::string& name) -> DesiredTarget& {
    const auto [at, added] = groups.emplace(name, targets.size());
    if (added) {
      targets.push_back({name, {{"target", name}}, {}, {}, {}, {}, true, false});
    }
    return targets[at->second];
  };
  for (ListenerGroup& group : group_listeners(loose, world.processes, earlier.processes)) {
    taken.insert(group.processes.begin(), group.processes.end());
    group_called(group.name).processes = std::move(group.processes);
  }
  // Those of before that listen no more and are still there.
  for (const auto& [tgid, name] : earlier.processes) {
    if (world.processes.contains(tgid) && !taken.contains(tgid)) {
      group_called(name).processes.insert(tgid);
    }
  }
}

std::vector<DesiredTarget> TargetRules::plan(const World& world, const Earlier& earlier) const {
  std::vector<DesiredTarget> targets;
  CgroupOwners owners;
  for (const auto& [path, id] : world.cgroups) {
    owners.path.emplace(id, &path);
  }
  plan_cgroups(world, targets, owners);
  plan_processes(world, earlier, targets);
  if (discovers_) {
    plan_listeners(world, earlier, targets, owners);
  }
  for (DesiredTarget& target : targets) {
    relabel(target.labels, labels_);
  }
  merge_equal(targets);
  return targets;
}

std::vector<std::string> TargetRules::absent(const std::vector<DesiredTarget>& targets) const {
  std::vector<std::string> names;
  for (const Rule& rule : rules_) {
    if (std::ranges::none_of(targets, [&rule](const DesiredTarget& t) { return t.name == rule.entry.name; })) {
      names.push_back(rule.entry.name);
    }
  }
  return names;
}

}  // namespace tacho::targets
