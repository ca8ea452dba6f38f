#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "bpf/lib/targets.h"
#include "targets/world.h"

// What an event of the kernel says, and changes in the picture of the machine. No look at the machine is taken.

namespace tacho::targets {

/// Path of the event's cgroup below the v2 root; none if the event does not have all of it.
std::optional<std::string> path_of(const target_event& event);

/// A cgroup was made at this path, or removed. A removal is of that cgroup alone: its path may have been taken again.
void note_cgroup(World& world, const target_event& event, const std::string& path);

/// A process begins to listen, or a listening socket was closed. @return whether a listener was added
bool note_listener(World& world, const target_event& event);

/// A process ended, or executes another program: nothing is known of it any more. @return whether it listened
bool forget_process(World& world, std::uint32_t tgid);

/// The listening TCP sockets of this process that no other known one has.
std::set<std::uint64_t> sockets_only_of(const World& world, std::uint32_t tgid);

}  // namespace tacho::targets
