#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"

namespace tacho::targets {

/// Where the cgroup v2 hierarchy is mounted, from /proc/self/mountinfo: /sys/fs/cgroup, or /sys/fs/cgroup/unified on
/// hybrid hosts. The mount of the whole hierarchy is preferred over that of a part. Where there is none, the v1
/// hierarchy of the memory controller.
Result<std::string> find_cgroup_mount(const std::string& mountinfo_path);

/// Whether a directory belongs to a hierarchy of cgroup v1.
bool is_cgroup_v1(const std::string& directory);

/// A cgroup's id is the inode number of its directory.
Result<std::uint64_t> cgroup_id(const std::string& mount, const std::string& path);

/// All cgroups below the mount, by path ("/" is the root). Directories that vanish meanwhile are left out.
std::map<std::string, std::uint64_t> walk_cgroups(const std::string& mount);

}  // namespace tacho::targets
