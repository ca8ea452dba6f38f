#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bpf/lib/targets.h"
#include "targets/container_name.h"

namespace tacho::targets {

struct Process {
  std::uint32_t tgid = 0;
  std::uint32_t parent = 0;
  std::uint32_t user = 0;
  std::string executable;  ///< path, without " (deleted)"; a name in brackets if it cannot be read
};

using Listener = listener_record;

/// The part of the machine's state that decides which targets there are.
struct World {
  std::map<std::string, std::uint64_t> cgroups;  ///< path below the v2 root ("/" is the root) → id
  std::map<std::uint32_t, Process> processes;    ///< by tgid; only filled where a rule or listener needs it
  std::vector<Listener> listeners;
  std::string own_cgroup;                                   ///< path of tacho's own; only where a rule needs it
  std::map<std::string, ContainerName, std::less<>> names;  ///< of containers, by path; unknown names are left out
  std::string node;                                         ///< name of the machine in Kubernetes, if known
  std::uint32_t own_tgid = 0;  ///< tacho does not discover itself, nor processes that hold its sockets
};

}  // namespace tacho::targets
