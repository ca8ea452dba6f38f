#include "targets/targets_object.h"

#include <bpf/targets.object.h>
#include <bpf/targets_basic.object.h>

#include <array>

namespace tacho::targets {
namespace {

using kernel::Alternative;
using kernel::Hook;

constexpr std::array<std::string_view, 2> kCgroups{"target_cgroup_created", "target_cgroup_removed"};
constexpr std::array<std::string_view, 3> kProcesses{"target_process_exited", "target_process_executed",
                                                     "target_process_forked"};
constexpr std::array<std::string_view, 1> kListeners{"target_listener_changed"};
constexpr std::array<std::string_view, 1> kOlder{"list_listeners"};
constexpr std::array<std::string_view, 1> kOwn{"list_own_cgroups"};
constexpr std::array<std::string_view, 1> kPaths{"list_processes"};
constexpr std::array<std::string_view, 1> kFileNames{"list_process_names"};

constexpr std::array kCgroupWays{Alternative{"tp_btf", kCgroups}};
constexpr std::array kProcessWays{Alternative{"tp_btf", kProcesses}};
constexpr std::array kListenerWays{Alternative{"tp_btf", kListeners}};
constexpr std::array kOlderWays{Alternative{"iterator", kOlder}};
constexpr std::array kOwnWays{Alternative{"iterator", kOwn}};
constexpr std::array kExecutableWays{Alternative{"iterator", kPaths}, Alternative{"iterator_names", kFileNames}};

constexpr std::array<std::string_view, 2> kRawCgroups{"raw_target_cgroup_created", "raw_target_cgroup_removed"};
constexpr std::array<std::string_view, 3> kRawProcesses{"raw_target_process_exited", "raw_target_process_executed",
                                                        "raw_target_process_forked"};
constexpr std::array<std::string_view, 1> kRawListeners{"raw_target_listener_changed"};

constexpr std::array kBasicCgroupWays{Alternative{"tp_btf", kCgroups}, Alternative{"raw_tracepoint", kRawCgroups}};
constexpr std::array kBasicProcessWays{Alternative{"tp_btf", kProcesses}, Alternative{"raw_tracepoint", kRawProcesses}};
constexpr std::array kBasicListenerWays{Alternative{"tp_btf", kListeners},
                                        Alternative{"raw_tracepoint", kRawListeners}};

constexpr std::array kHooks{Hook{"cgroups", kCgroupWays},     Hook{"processes", kProcessWays},
                            Hook{"listeners", kListenerWays}, Hook{"older_listeners", kOlderWays},
                            Hook{"own_cgroups", kOwnWays},    Hook{"executables", kExecutableWays}};

constexpr std::array kBasicHooks{Hook{"cgroups", kBasicCgroupWays},     Hook{"processes", kBasicProcessWays},
                                 Hook{"listeners", kBasicListenerWays}, Hook{"older_listeners", kOlderWays},
                                 Hook{"own_cgroups", kOwnWays},         Hook{"executables", kExecutableWays}};

}  // namespace

std::vector<kernel::Variant> targets_variants() {
  return {{"atomic", kernel::source_of("targets", targets_object), kHooks},
          {"basic", kernel::source_of("targets", targets_basic_object), kBasicHooks}};
}

Result<std::unique_ptr<kernel::BpfObject>> load_targets_object(std::size_t indices, bool cgroup_v1,
                                                               const kernel::LoadOptions& options) {
  return kernel::load_best(targets_variants(), options, [indices, cgroup_v1](kernel::ObjectSetup& setup) {
    setup.set_constant("cgroup_v1", static_cast<std::uint32_t>(cgroup_v1));
    setup.set_max_entries("target_settings", static_cast<std::uint32_t>(indices));
  });
}

}  // namespace tacho::targets
