#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "bpf/sched.h"
#include "metrics/family.h"
#include "metrics/value.h"
#include "probes/cpu_limits.h"
#include "probes/presence.h"
#include "probes/rising.h"

namespace tacho::probes {

/// The slots in which the programs count the threads that are off CPU in a system call, by its number on this
/// architecture (sched.bpf.c, call_slots).
std::array<std::uint8_t, TACHO_SYSCALLS> call_slots();

/// The parts of a target's sched block that must fit together; sums over shards.
struct SchedTimes {
  std::array<Presence, TACHO_THREAD_STATES> states;
  std::array<Presence, TACHO_OFFCPU_CALLS> calls;
  std::int64_t now_ns = 0;  ///< time of the reading
  bool in_step = true;  ///< false: a thread may be counted without its time, and a total is off by the machine's uptime
};

/// All shards at one time. A thread may leave a state on one CPU and enter the next on another, so a reader that is
/// interrupted between two shards would count it in both or in none; such a read is repeated. If no undisturbed time is
/// found, every shard by itself is consistent.
/// @param clock CLOCK_MONOTONIC in ns, as the programs use it
SchedTimes read_times(std::span<const sched_shard* const> shards, std::int64_t (*clock)());

/// Adds the CPUs that threads seen since the period before this one may run on, and how much of them.
/// @param now_ns as the programs' clock
void add_affinity(ThreadLimits& limits, const sched_shard& shard, std::int64_t now_ns);

/// Thread time as it is exported: it never falls.
struct SchedTotals {
  std::array<std::uint64_t, TACHO_THREAD_STATES> state_ns{};
  std::array<std::uint64_t, TACHO_OFFCPU_CALLS> offcpu_ns{};

  /// The clock of a program on another CPU may be a little ahead of ours: a counter must not decrease for that. It must
  /// not leap for a torn read either, since it could never return.
  void raise(const SchedTimes& times);
};

/// The same for all who read at a time.
class RisingTotals {
 public:
  /// @return the largest totals so far, these included
  SchedTotals raise(const SchedTotals& totals);

 private:
  std::array<Rising<std::uint64_t>, TACHO_THREAD_STATES> state_ns_;
  std::array<Rising<std::uint64_t>, TACHO_OFFCPU_CALLS> offcpu_ns_;
};

std::span<const metrics::Family> sched_families();

/// Values of sched_families().
void decode(const metrics::Histogram& runqueue_delay, const SchedTotals& totals, const CpuAllowance& allowance,
            metrics::Row& row);

}  // namespace tacho::probes
