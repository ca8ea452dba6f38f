#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "config/checks.h"
#include "targets/connection_units.h"
#include "targets/listener_groups.h"
#include "targets/plan_parts.h"

namespace tacho::targets {
namespace {

/// Whether somebody who listens on this is a server worth a target of its own. In units and containers a listening unix
/// socket is enough, except for the plumbing of the system itself; elsewhere too many helpers have one.
bool makes_target(const Listener& listener, const CgroupIdentity& identity) {
  if (identity.kind == CgroupIdentity::Kind::plumbing) {
    return false;
  }
  if (listener.kind != TACHO_LISTENER_UNIX) {
    return is_server_socket(listener);
  }
  return identity.kind == CgroupIdentity::Kind::container ||
         (identity.kind == CgroupIdentity::Kind::unit && !identity.unit.starts_with("systemd-") &&
          !identity.unit.starts_with("dbus"));
}

/// Anybody may listen, and a user have services: these come last, and with the user's number.
void set_rank(DesiredTarget& target, const World& world) {
  const CgroupIdentity& identity = target.identity;
  if (identity.path.empty()) {
    target.rank = Rank::loose;
    const auto process = world.processes.find(*target.processes.begin());
    const std::uint32_t user = process == world.processes.end() ? 0 : process->second.user;
    target.owner = user == 0 ? "" : std::to_string(user);
  } else if (!identity.user.empty()) {
    target.rank = Rank::loose;
    target.owner = identity.user;
  } else {
    target.rank = identity.kind == CgroupIdentity::Kind::container ? Rank::container : Rank::service;
  }
}

/// What tacho listens on; its other processes have the same sockets.
std::set<std::uint64_t> own_sockets(const World& world) {
  std::set<std::uint64_t> sockets;
  for (const Listener& listener : world.listeners) {
    if (listener.tgid == world.own_tgid) {
      sockets.insert(listener.socket);
    }
  }
  return sockets;
}

/// Names that no process may take, as labels have them: whoever calls a program so would write into these series.
std::set<std::string> taken_names(const std::vector<DesiredTarget>& targets) {
  std::set<std::string> names{std::string(config::kOverflowTarget)};
  for (const DesiredTarget& target : targets) {
    names.insert(well_formed(target.name));
  }
  return names;
}

}  // namespace

void TargetRules::plan_listeners(const World& world, const Earlier& earlier, std::vector<DesiredTarget>& targets,
                                 CgroupOwners& owners) const {
  std::set<std::uint32_t> taken;
  for (const DesiredTarget& target : targets) {
    taken.insert(target.processes.begin(), target.processes.end());
  }
  const std::set<std::uint64_t> own = own_sockets(world);
  std::map<std::string, CgroupIdentity> found;
  std::vector<Listener> loose;
  for (const Listener& listener : world.listeners) {
    const auto path = owners.path.find(listener.cgroup);
    if (own.contains(listener.socket) || taken.contains(listener.tgid)) {
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
      if (!listens_for_others(listener.tgid, world.processes)) {
        loose.push_back(listener);
      }
    } else {
      found.try_emplace(identity.path, std::move(identity));
    }
  }
  // systemd itself listens for those that it starts once a connection.
  for (const auto& [path, id] : world.cgroups) {
    std::optional<CgroupIdentity> service = service_of_connections(path);
    if (service && owners.of(service->path) == CgroupOwners::kNone && !excluded(service->path)) {
      found.try_emplace(service->path, std::move(*service));
    }
  }
  std::set<std::string> draining;
  for (const std::string& path : earlier.cgroups) {
    const bool idle = earlier.templates.contains(path);  // until the next connection
    if (!world.cgroups.contains(path) || found.contains(path) || owners.of(path) != CgroupOwners::kNone ||
        excluded(path) || (!idle && !earlier.inhabited(path))) {
      continue;
    }
    if (idle) {
      found.try_emplace(path, identify_template(path));
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
    for (std::string at = path; at != "/"; at = std::string(parent_of(at))) {
      if (found.contains(at)) {
        members[at].insert(id);
        break;
      }
    }
  }
  for (auto& [path, identity] : found) {
    const ContainerName* const container = container_at(identity, path, world);
    const std::string name = discovered_name(identity, container);
    DesiredTarget target{name, {{"target", name}}, std::move(members[path]), {}, discovered_, identity, true, false};
    target.drains = draining.contains(path);
    if (container != nullptr) {
      describe(target, *container);
    }
    targets.push_back(std::move(target));
  }
  std::map<std::string, std::size_t> groups;  // by name, among the targets
  const auto group_called = [this, &targets, &groups](const std::string& name) -> DesiredTarget& {
    const auto [at, added] = groups.emplace(name, targets.size());
    if (added) {
      targets.push_back({name, {{"target", name}}, {}, {}, discovered_, {}, true, false});
    }
    return targets[at->second];
  };
  const std::set<std::string> names = taken_names(targets);
  for (ListenerGroup& group : group_listeners(loose, world.processes, earlier.processes, names)) {
    taken.insert(group.processes.begin(), group.processes.end());
    group_called(group.name).processes = std::move(group.processes);
  }
  // Those of before that listen no more and are still there.
  for (const auto& [tgid, name] : earlier.processes) {
    if (world.processes.contains(tgid) && !taken.contains(tgid)) {
      group_called(names.contains(name) ? name + "#2" : name).processes.insert(tgid);
    }
  }
  for (DesiredTarget& target : targets) {
    if (target.discovered) {
      set_rank(target, world);
    }
  }
}

}  // namespace tacho::targets
