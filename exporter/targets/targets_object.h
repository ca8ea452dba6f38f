#pragma once

#include <memory>

#include "base/result.h"
#include "kernel/bpf_object.h"

namespace tacho::targets {

/// Loads bpf/targets.bpf.c: the look-up maps that all probes share, and the events of discovery.
/// @param indices of targets, `other` included
/// @param cgroup_v1 cgroups are those of the v1 memory controller
Result<std::unique_ptr<kernel::BpfObject>> load_targets_object(std::size_t indices, bool cgroup_v1,
                                                               const kernel::LoadOptions& options);

}  // namespace tacho::targets
