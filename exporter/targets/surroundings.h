#pragma once

#include <span>
#include <string>
#include <vector>

#include "targets/cgroup_path.h"
#include "targets/discovery.h"
#include "targets/plan.h"

namespace tacho::targets {

/// What hides the machine from a tacho in a container although its configuration needs it: one line each, with the
/// option that makes it visible.
std::vector<std::string> hidden_from(const Paths& paths, const TargetRules& rules);

/// Why containers have no names: one line for each missing source.
/// @param unnamed containers without a name
std::vector<std::string> missing_names(const NameSources& sources, std::span<const CgroupIdentity> unnamed);

}  // namespace tacho::targets
