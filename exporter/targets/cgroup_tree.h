#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"

namespace tacho::targets {

/// The mount of the cgroup v2 hierarchy, from /proc/self/mountinfo: /sys/fs/cgroup, or /sys/fs/cgroup/unified on hybrid
/// hosts. The mount of the whole hierarchy is preferred over that of a part. Without one, the v1 hierarchy of the
/// memory controller.
Result<std::string> find_cgroup_mount(const std::string& mountinfo_path);

/// The mount of the whole v1 hierarchy of a controller such as "cpu"; empty if there is none: it may be in v2.
std::string find_controller_mount(const std::string& mountinfo_path, const std::string& controller);

/// Whether a directory belongs to a hierarchy of cgroup v1.
bool is_cgroup_v1(const std::string& directory);

/// A cgroup's id is the inode number of its directory.
Result<std::uint64_t> cgroup_id(const std::string& mount, const std::string& path);

/// Checks that a directory is of a cgroup hierarchy.
Result<void> check_cgroup_mount(const std::string& directory);

/// What a walk has found.
struct CgroupWalk {
  std::map<std::string, std::uint64_t> found;  ///< ids by path; "/" is the root
  /// Why, by the path that refuses to be read by its owner's doing: permissions, names too long for a path. What is
  /// below is not known.
  std::map<std::string, Error> refused{};
};

/// All cgroups below the mount. Directories that vanish meanwhile are left out. One that cannot be read for want of
/// something (descriptors, memory) is an error, since its cgroups would be taken for removed.
Result<CgroupWalk> walk_cgroups(const std::string& mount);

/// Whether a process is in the cgroup or below it. A cgroup that cannot be read counts as inhabited.
bool is_inhabited(const std::string& mount, const std::string& path);

}  // namespace tacho::targets
