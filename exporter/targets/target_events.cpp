#include "targets/target_events.h"

#include <vector>

namespace tacho::targets {

std::optional<std::string> path_of(const target_event& event) {
  if (event.path_length <= 1 || event.path_length >= TACHO_EVENT_PATH) {
    return std::nullopt;
  }
  return std::string(event.path, event.path_length - 1);
}

void note_cgroup(World& world, const target_event& event, const std::string& path) {
  if (event.kind == TACHO_CGROUP_CREATED) {
    world.cgroups[path] = event.cgroup;
  } else if (const auto at = world.cgroups.find(path); at != world.cgroups.end() && at->second == event.cgroup) {
    world.cgroups.erase(at);
    // Who listened in it is gone.
    std::erase_if(world.listeners, [&event](const Listener& l) { return l.cgroup == event.cgroup; });
  }
}

bool note_listener(World& world, const target_event& event) {
  if (event.kind == TACHO_LISTENER_CLOSED) {
    std::erase_if(world.listeners, [&event](const Listener& l) { return l.socket == event.socket; });
    return false;
  }
  if (event.port == 0) {
    return false;
  }
  Listener listener{};
  listener.cgroup = event.cgroup;
  listener.socket = event.socket;
  listener.tgid = event.tgid;
  listener.network = event.network;
  listener.kind = TACHO_LISTENER_TCP;
  listener.family = event.family;
  listener.port = event.port;
  listener.port_free = event.port_free;
  world.listeners.push_back(listener);
  return true;
}

std::set<std::uint64_t> sockets_only_of(const World& world, std::uint32_t tgid) {
  std::set<std::uint64_t> sockets;
  for (const Listener& listener : world.listeners) {
    if (listener.tgid == tgid && listener.kind == TACHO_LISTENER_TCP) {
      sockets.insert(listener.socket);
    }
  }
  for (const Listener& listener : world.listeners) {
    if (listener.tgid != tgid) {
      sockets.erase(listener.socket);
    }
  }
  return sockets;
}

bool forget_process(World& world, std::uint32_t tgid) {
  world.processes.erase(tgid);
  return std::erase_if(world.listeners, [tgid](const Listener& l) { return l.tgid == tgid; }) > 0;
}

}  // namespace tacho::targets
