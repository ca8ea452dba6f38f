#include "targets/plan.h"

#include <algorithm>
#include <cerrno>

#include "base/utf8.h"
#include "targets/plan_parts.h"
#include "targets/self.h"
#include "targets/tell_apart.h"

namespace tacho::targets {
namespace {

bool has_wildcard(const std::string& glob) {
  return glob.find_first_of("*?[") != std::string::npos;
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
  return {.ports = entry.ports, .http2 = entry.http2, .exclude_clients = entry.exclude_clients};
}

/// Whether a pattern names a cgroup. The root has no name of its own: "/*" and "/**" mean what is below it.
bool names(const config::Glob& glob, const std::string& path) {
  return path == "/" ? glob.pattern() == "/" : glob.matches(path);
}

}  // namespace

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
  rules.discovered_.exclude_clients = config.discovery.exclude_clients;
  rules.discovers_ = config.discovery.listeners == config::Listeners::always ||
                     (config.discovery.listeners == config::Listeners::automatic && config.targets.empty());
  return rules;
}

bool TargetRules::needs_listeners() const {
  return discovers_ || std::ranges::any_of(rules_, [](const Rule& r) { return r.entry.process.has_value(); });
}

bool TargetRules::excludes_clients() const {
  return (discovers_ && discovered_.exclude_clients != config::Clients::none) ||
         std::ranges::any_of(rules_, [](const Rule& r) { return r.entry.exclude_clients != config::Clients::none; });
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
  for (std::string at = path;; at = std::string(parent_of(at))) {
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
    std::size_t owner = path == "/" ? CgroupOwners::kNone : owners.of(std::string(parent_of(path)));
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
          describe(target, *container);
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
  // Labels are text: names that differ in what is none have to differ afterwards, too.
  for (DesiredTarget& target : targets) {
    target.name = well_formed(target.name);
    for (auto& [name, value] : target.labels) {
      value = well_formed(value);
    }
  }
  tell_apart(targets, world, earlier.marks);
  for (DesiredTarget& target : targets) {
    target.node = world.node;
    target.workload = workload_of(target.container.pod, target.identity.pod_uid, world.node);
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
