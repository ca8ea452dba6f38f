#include "probes/socket_setup.h"

#include <ctime>
#include <utility>

#include "bpf/socket.h"
#include "kernel/features.h"
#include "kernel/kernel_types.h"
#include "probes/load.h"

namespace tacho::probes {
namespace {

/// The kernel's tick, which its coarse clocks advance by; 0 if it does not say.
std::uint32_t nanoseconds_of_a_jiffy() {
  timespec tick{};
  return ::clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0 ? static_cast<std::uint32_t>(tick.tv_nsec) : 0;
}

/// Whether TCP reads its clock when data is received: up to Linux 6.18.
std::uint32_t receives_tell_time() {
  constexpr std::pair kLastKernel{6U, 18U};
  const auto release = kernel::kernel_release();
  return static_cast<std::uint32_t>(release.first > 0 && release <= kLastKernel);
}

void set_up_threads(kernel::ObjectSetup& setup, ThreadRecords threads, const Environment& environment) {
  setup.set_constant("threads_in", static_cast<std::uint32_t>(threads));
  constexpr std::uint32_t kRecordBytes = 1 << 20;  // four thousand records between two looks
  if (threads == ThreadRecords::unknown) {
    return;
  }
  setup.set_max_entries("slow_records", kRecordBytes);
  for (const char* map : {"sched_states", "latest_reads"}) {
    setup.reuse_map(map, environment.threads->map(map));
  }
}

void set_up_dependencies(kernel::ObjectSetup& setup, const Environment& environment) {
  setup.set_constant("max_peers", environment.max_peers);
  const auto indices = static_cast<std::uint32_t>(environment.indices);
  setup.set_max_entries("dependency_slots", indices * environment.max_peers);
  setup.set_max_entries("dependency_blocks", indices);
  setup.set_inner_array("dependency_blocks", sizeof(dependency), environment.max_peers + 1);
}

}  // namespace

ThreadRecords find_thread_records(const config::Config& config, const Environment& environment) {
  if (!config.probes.anatomy.enabled || environment.threads == nullptr || !environment.threads->attached("threads")) {
    return ThreadRecords::unknown;
  }
  return environment.threads->method("state") == "task_storage" ? ThreadRecords::in_storage : ThreadRecords::in_hash;
}

kernel::BpfObject::Setup socket_setup(const Environment& environment, const PeerNames& names, ThreadRecords threads) {
  return [&environment, &names, threads](kernel::ObjectSetup& setup) {
    set_up_threads(setup, threads, environment);
    setup.set_constant("preemptible_tracepoints", static_cast<std::uint32_t>(kernel::has_preemptible_tracepoints()));
    setup.set_constant("jiffy_ns", nanoseconds_of_a_jiffy());
    setup.set_constant("receives_tell_time", receives_tell_time());
    const auto indices = static_cast<std::uint32_t>(environment.indices);
    setup.set_max_entries("socket_chains", indices);
    set_up_dependencies(setup, environment);
    names.set_up(setup);
    set_up_blocks(setup, "socket_blocks", sizeof(socket_shard), environment);
  };
}

}  // namespace tacho::probes
