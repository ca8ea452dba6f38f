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

Result<void> set_up_threads(kernel::ObjectSetup& setup, ThreadRecords threads, const Environment& environment) {
  if (auto done = setup.set_constant("threads_in", static_cast<std::uint32_t>(threads)); !done) {
    return done;
  }
  constexpr std::uint32_t kRecordBytes = 1 << 20;  // four thousand records between two looks
  if (threads == ThreadRecords::unknown) {
    return {};
  }
  if (auto done = setup.set_max_entries("slow_records", kRecordBytes); !done) {
    return done;
  }
  for (const char* map : {"sched_states", "latest_reads"}) {
    if (auto done = setup.reuse_map(map, environment.threads->map(map)); !done) {
      return done;
    }
  }
  return {};
}

Result<void> set_up_dependencies(kernel::ObjectSetup& setup, const Environment& environment) {
  if (auto done = setup.set_constant("max_peers", environment.max_peers); !done) {
    return done;
  }
  const auto indices = static_cast<std::uint32_t>(environment.indices);
  if (auto done = setup.set_max_entries("dependency_slots", indices * environment.max_peers); !done) {
    return done;
  }
  if (auto done = setup.set_max_entries("dependency_blocks", indices); !done) {
    return done;
  }
  return setup.set_inner_array("dependency_blocks", sizeof(dependency), environment.max_peers + 1);
}

}  // namespace

ThreadRecords find_thread_records(const config::Config& config, const Environment& environment) {
  if (!config.probes.anatomy.enabled || environment.threads == nullptr || !environment.threads->attached("threads")) {
    return ThreadRecords::unknown;
  }
  return environment.threads->method("state") == "task_storage" ? ThreadRecords::in_storage : ThreadRecords::in_hash;
}

kernel::BpfObject::Setup socket_setup(const Environment& environment, const PeerNames& names, ThreadRecords threads) {
  return [&environment, &names, threads](kernel::ObjectSetup& setup) -> Result<void> {
    if (auto done = set_up_threads(setup, threads, environment); !done) {
      return done;
    }
    if (auto done = setup.set_constant("preemptible_tracepoints",
                                       static_cast<std::uint32_t>(kernel::has_preemptible_tracepoints()));
        !done) {
      return done;
    }
    if (auto done = setup.set_constant("jiffy_ns", nanoseconds_of_a_jiffy()); !done) {
      return done;
    }
    if (auto done = setup.set_constant("receives_tell_time", receives_tell_time()); !done) {
      return done;
    }
    const auto indices = static_cast<std::uint32_t>(environment.indices);
    if (auto done = setup.set_max_entries("socket_chains", indices); !done) {
      return done;
    }
    if (auto done = set_up_dependencies(setup, environment); !done) {
      return done;
    }
    if (auto done = names.set_up(setup); !done) {
      return done;
    }
    return set_up_blocks(setup, "socket_blocks", sizeof(socket_shard), environment);
  };
}

}  // namespace tacho::probes
