#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bpf/lib/targets.h"
#include "config/config.h"
#include "kernel/bpf_object.h"
#include "targets/target_maps.h"

namespace tacho::targets {

/// The cgroups around tacho, as the kernel reports them: nothing of the host has to be mounted, and the paths are those
/// of the whole hierarchy, also inside a cgroup namespace.
struct OwnCgroups {
  std::string path;                              ///< of tacho's own cgroup, below the v2 root
  std::map<std::string, std::uint64_t> cgroups;  ///< path → id: those around tacho's, and all below the pod's
};

/// The cgroup of the pod, in which each container has one of its own, seen from one of the containers; a cgroup that a
/// runtime has made inside its container does not count.
std::string pod_cgroup(std::string_view own_path);

/// Whether a path is that of a pod's container beside tacho's: not tacho's own, nor a container's monitor.
bool is_container_of_own_pod(std::string_view path, std::string_view own_path);

/// Whether a cgroup may belong to what a target selects by `self`.
bool is_around_self(std::string_view path, std::string_view own_path);

/// Composes the paths.
/// @param records parents before children, tacho's own cgroup and those above it first
/// @return ENOTSUP if tacho is in the root cgroup: cgroup v2 does not separate containers there
Result<OwnCgroups> own_cgroups_of(std::span<const own_cgroup> records);

/// Reads them from the kernel, by the object's iterator `list_own_cgroups`.
/// @param pod whether to list all of the pod's cgroups, not only those below tacho's own
/// @return ENOTSUP if there is no such cgroup
Result<OwnCgroups> find_own_cgroups(const kernel::BpfObject& object, TargetMaps& maps, bool pod);

}  // namespace tacho::targets
