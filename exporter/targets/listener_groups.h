#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "targets/world.h"

namespace tacho::targets {

/// Processes that serve the same sockets, such as a master and its workers.
struct ListenerGroup {
  std::set<std::uint32_t> processes;
  std::string name;  ///< "redis-server:6379": executable and lowest port
};

/// Whether the socket is a server's: listening stream sockets, and datagram sockets bound below the ephemeral ports.
bool is_server_socket(const Listener& listener);

/// Whether a process holds its sockets only for another process that serves them: a manager, or a helper of a container
/// engine.
bool listens_for_others(std::uint32_t tgid, const std::map<std::uint32_t, Process>& processes);

/// Groups the holders of the listeners: processes that share a socket belong together, and a child with the same
/// executable as its parent belongs to the parent.
/// @param known names given earlier, by tgid
/// @param taken names that others have, whose series anybody could write into by calling a program so
std::vector<ListenerGroup> group_listeners(const std::vector<Listener>& listeners,
                                           const std::map<std::uint32_t, Process>& processes,
                                           const std::map<std::uint32_t, std::string>& known,
                                           const std::set<std::string>& taken = {});

}  // namespace tacho::targets
