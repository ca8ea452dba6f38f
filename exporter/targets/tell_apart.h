#pragma once

#include <map>
#include <string>
#include <vector>

#include "targets/plan.h"

namespace tacho::targets {

/// Two living servers never share a series unless the configuration merges them. Of targets with the same labels, one
/// keeps them: the one that only a runtime can have made, or else the older one. The others get one more label, by
/// which they differ: `runtime`, `container_id` or `cgroup`. Only containers that take turns under one name in a pod
/// are one target.
/// @param known marks given earlier, by path of the cgroup: a target keeps its own while it lives
void tell_apart(std::vector<DesiredTarget>& targets, const World& world, const std::map<std::string, Labels>& known);

/// Merges targets that have the same labels.
void merge_equal(std::vector<DesiredTarget>& targets);

}  // namespace tacho::targets
