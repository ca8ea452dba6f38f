#pragma once

#include <map>
#include <string>
#include <vector>

#include "targets/plan.h"

namespace tacho::targets {

/// Two living servers are never one series unless the configuration asks for it: of targets with the same labels, the
/// one that only a runtime can have made, or else the older one, keeps them, and the others get one more, by which they
/// differ: `runtime`, `container_id` or `cgroup`. Only the containers that take turns under one name in a pod are one.
/// @param known marks given earlier, by path of the cgroup: a target keeps its own while it lives
void tell_apart(std::vector<DesiredTarget>& targets, const World& world, const std::map<std::string, Labels>& known);

/// Makes one of those that have the same labels.
void merge_equal(std::vector<DesiredTarget>& targets);

}  // namespace tacho::targets
