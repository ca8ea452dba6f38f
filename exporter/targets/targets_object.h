#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/bpf_object.h"
#include "kernel/variants.h"

namespace tacho::targets {

/// Loads bpf/targets.bpf.c: the look-up maps that all probes share, and the events of discovery.
/// @param indices of targets, `other` included
/// @param cgroup_v1 cgroups are those of the v1 memory controller
Result<std::unique_ptr<kernel::BpfObject>> load_targets_object(std::size_t indices, bool cgroup_v1,
                                                               const kernel::LoadOptions& options);

/// The maps of this object whose fill is exported.
inline constexpr std::array<std::string_view, 2> kBoundedMaps{"cgroup_targets", "process_targets"};

/// The compilations of bpf/targets.bpf.c, the best first.
std::vector<kernel::Variant> targets_variants();

}  // namespace tacho::targets
