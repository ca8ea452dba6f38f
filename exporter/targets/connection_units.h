#pragma once

#include <optional>
#include <string>

#include "targets/cgroup_path.h"

namespace tacho::targets {

// Services that systemd starts once for each connection to a socket unit (Accept=yes): systemd listens, the services do
// not. All instances of such a template are in a slice of their own, unless Slice= names another one. The slice stays
// when there is no connection, and a cgroup that is made in it belongs to its target at once.

/// The identity that the cgroup of such an instance is a part of: "echo@.service", with the path of the slice, for
/// "/system.slice/system-echo.slice/echo@7-10.0.0.1:80-10.0.0.9:4711.service". Nothing for all other cgroups, and for
/// instances that systemd starts for itself.
std::optional<CgroupIdentity> service_of_connections(const std::string& path);

/// The same for the slice itself, once such instances were in it.
CgroupIdentity identify_template(const std::string& slice);

/// Whether the identity is that of a template.
bool is_template(const CgroupIdentity& identity);

}  // namespace tacho::targets
