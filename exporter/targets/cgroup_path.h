#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacho::targets {

/// The cgroup above one; that of the root is the root.
inline std::string_view parent_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : path.substr(0, slash);
}

/// The identity of a cgroup, read from its path.
struct CgroupIdentity {
  enum class Kind : std::uint8_t {
    container,  ///< made by a container runtime for one container
    unit,       ///< a systemd service
    session,    ///< a login session, a user's manager, or the root: any process may run there
    plumbing,   ///< a manager itself (init.scope), a socket or mount unit: work of systemd for others
    other,      ///< made by hand or by something unknown
  };
  /// The users who can have made a container's cgroup; the fewer they are, the earlier the place stands here. A
  /// runtime's data about an id is true only of the cgroup that the runtime has made.
  enum class Place : std::uint8_t {
    runtime_root,      ///< below one of the runtimes' own roots: only root
    elsewhere,         ///< below any other cgroup of the machine's (--cgroup-parent): only root
    inside_container,  ///< below another container or machine: root there
    users,             ///< below a user's manager: that user
  };
  Kind kind = Kind::other;
  Place place = Place::elsewhere;
  std::string path;          ///< of the container or unit itself: a cgroup inside one is cut off
  std::string runtime;       ///< "containerd", "cri-o", "docker", "podman", "lxc", "ecs", … or empty
  std::string container_id;  ///< 64 hex digits as a rule
  std::string pod_uid;       ///< with dashes
  std::string unit;          ///< "nginx.service"
  std::string user;          ///< number of the user whose manager it is below
  std::string machine;       ///< name of the machine (systemd-nspawn, libvirt) that it is in

  bool operator==(const CgroupIdentity&) const = default;
};

/// Reads a path below the cgroup root. The shapes are those of the systemd and cgroupfs drivers of Kubernetes, of
/// Docker, podman, nerdctl, LXC and ECS. Where several match (nested containers), the last one counts. A name that
/// looks like a container's counts only where a runtime can have made it: not in a subtree that systemd has delegated
/// to a service, and below a user's manager only if that user's rootless engine makes such names.
CgroupIdentity identify(std::string_view path);

/// Whether a component of a path is a container's monitor, which is not the container itself.
bool is_monitor(std::string_view component);

}  // namespace tacho::targets
