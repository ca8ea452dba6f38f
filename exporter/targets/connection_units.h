#pragma once

#include <optional>
#include <string>

#include "targets/cgroup_path.h"

namespace tacho::targets {

// Services that systemd starts once for each connection to a socket unit (Accept=yes): systemd listens, and none of
// them does. All instances of such a template are in a slice of its own, unless it says otherwise (Slice=); that slice
// stays when no connection is there, and what is made in it belongs to its target at once.

/// What the cgroup of such an instance is a part of: "echo@.service", with the path of the slice, for
/// "/system.slice/system-echo.slice/echo@7-10.0.0.1:80-10.0.0.9:4711.service". Nothing for all other cgroups, and for
/// what systemd starts for itself.
std::optional<CgroupIdentity> service_of_connections(const std::string& path);

/// The same of the slice itself, which has been such a one.
CgroupIdentity identify_template(const std::string& slice);

/// Whether it is that of a template.
bool is_template(const CgroupIdentity& identity);

}  // namespace tacho::targets
