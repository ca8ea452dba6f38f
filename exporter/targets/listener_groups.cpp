#include "targets/listener_groups.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "base/utf8.h"

namespace tacho::targets {
namespace {

/// Below the usual range of ephemeral ports (net.ipv4.ip_local_port_range): a datagram socket above may be a client's.
constexpr std::uint16_t kFirstEphemeralPort = 32768;

/// The last component of the executable's path; the brackets say only that it is not a path.
std::string program_of(const Process& process) {
  std::string name = process.executable.substr(process.executable.rfind('/') + 1);
  if (name.starts_with('[') && name.ends_with(']')) {
    name = name.substr(1, name.size() - 2);
  }
  // A file may be called "[]"; an empty label is none.
  return name.empty() ? "unknown" : well_formed(name);
}

/// Disjoint sets of thread groups.
class Components {
 public:
  std::uint32_t find(std::uint32_t tgid) {
    const auto at = parent_.try_emplace(tgid, tgid).first;
    if (at->second == tgid) {
      return tgid;
    }
    const std::uint32_t root = find(at->second);
    parent_[tgid] = root;
    return root;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[find(a)] = find(b); }

 private:
  std::map<std::uint32_t, std::uint32_t> parent_;
};

std::string name_of(const ListenerGroup& group, const std::vector<const Listener*>& sockets,
                    const std::map<std::uint32_t, Process>& processes) {
  const auto known =
      std::ranges::find_if(group.processes, [&](std::uint32_t tgid) { return processes.contains(tgid); });
  std::string name = known != group.processes.end() ? program_of(processes.at(*known)) : "unknown";
  // TCP before UDP, then the lowest port; one that the kernel chose is another at the next start.
  std::optional<std::pair<std::uint32_t, std::uint16_t>> best;
  for (const Listener* socket : sockets) {
    const std::pair candidate{socket->kind, socket->port};
    if (socket->port != 0 && socket->port_free == 0 && (!best || candidate < *best)) {
      best = candidate;
    }
  }
  return best ? name + ":" + std::to_string(best->second) : name;
}

/// `name`, or the same told apart from those in `names`, to which it is added.
std::string free_name(const std::string& name, const std::vector<const Listener*>& sockets,
                      std::set<std::string>& names) {
  if (names.insert(name).second) {
    return name;
  }
  // The same program on the same port in another network namespace, or sharing the port (SO_REUSEPORT).
  const std::string there = sockets.empty() ? name : name + "@" + std::to_string(sockets.front()->network);
  std::string candidate = there;
  for (int number = 2; !names.insert(candidate).second; ++number) {
    candidate = there + "#" + std::to_string(number);
  }
  return candidate;
}

}  // namespace

bool is_server_socket(const Listener& listener) {
  switch (listener.kind) {
    case TACHO_LISTENER_TCP:
      return true;
    case TACHO_LISTENER_UDP:
      return listener.port < kFirstEphemeralPort;
    default:
      return false;
  }
}

bool listens_for_others(std::uint32_t tgid, const std::map<std::uint32_t, Process>& processes) {
  constexpr std::array<std::string_view, 7> kHelpers{"systemd",     "docker-proxy", "rootlessport", "rootlesskit",
                                                     "slirp4netns", "pasta",        "conmon"};
  const auto process = processes.find(tgid);
  if (process == processes.end()) {
    return false;
  }
  return std::ranges::find(kHelpers, program_of(process->second)) != kHelpers.end();
}

std::vector<ListenerGroup> group_listeners(const std::vector<Listener>& listeners,
                                           const std::map<std::uint32_t, Process>& processes,
                                           const std::map<std::uint32_t, std::string>& known,
                                           const std::set<std::string>& taken) {
  Components components;
  std::map<std::uint64_t, std::uint32_t> holder;
  std::set<std::uint32_t> members;
  for (const Listener& listener : listeners) {
    members.insert(listener.tgid);
    components.join(listener.tgid, holder.try_emplace(listener.socket, listener.tgid).first->second);
  }
  // From parents to children, as far as the executable stays the same; a process may have a lower number than its
  // parent.
  for (bool grown = !members.empty(); grown;) {
    grown = false;
    for (const auto& [tgid, process] : processes) {
      const auto parent = processes.find(process.parent);
      if (parent == processes.end() || members.contains(tgid) || !members.contains(process.parent) ||
          parent->second.executable != process.executable) {
        continue;
      }
      members.insert(tgid);
      components.join(tgid, process.parent);
      grown = true;
    }
  }
  std::map<std::uint32_t, ListenerGroup> groups;
  std::map<std::uint32_t, std::vector<const Listener*>> sockets;
  for (const std::uint32_t tgid : members) {
    groups[components.find(tgid)].processes.insert(tgid);
  }
  for (const Listener& listener : listeners) {
    sockets[components.find(listener.tgid)].push_back(&listener);
  }
  // Names given earlier first: a group that is new must not take one away.
  std::set<std::string> names = taken;
  for (auto& [root, group] : groups) {
    for (const std::uint32_t tgid : group.processes) {
      if (const auto earlier = known.find(tgid); earlier != known.end() && names.insert(earlier->second).second) {
        group.name = earlier->second;
        break;
      }
    }
  }
  std::vector<ListenerGroup> result;
  for (auto& [root, group] : groups) {
    if (group.name.empty()) {
      group.name = free_name(name_of(group, sockets[root], processes), sockets[root], names);
    }
    result.push_back(std::move(group));
  }
  return result;
}

}  // namespace tacho::targets
