#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacho::targets {

/// What a cgroup's path says about who made it.
struct CgroupIdentity {
  enum class Kind : std::uint8_t {
    container,  ///< made by a container runtime for one container
    unit,       ///< a systemd service
    session,    ///< a login session, or the root: whatever somebody runs there
    other,      ///< made by hand or by something unknown
  };
  Kind kind = Kind::other;
  std::string path;          ///< of the container or unit itself: a cgroup inside one is cut off
  std::string runtime;       ///< "containerd", "cri-o", "docker", "podman", "lxc", "ecs", … or empty
  std::string container_id;  ///< 64 hex digits as a rule
  std::string pod_uid;       ///< with dashes
  std::string unit;          ///< "nginx.service"
};

/// Reads a path below the cgroup root. The shapes are those of the systemd and cgroupfs drivers of Kubernetes, of
/// Docker, podman, nerdctl, LXC and ECS; where several match (nested containers), the last does.
CgroupIdentity identify(std::string_view path);

/// Whether a component of a path is that of a container's monitor, which is not the container.
bool is_monitor(std::string_view component);

}  // namespace tacho::targets
