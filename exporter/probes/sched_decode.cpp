#include "probes/sched_decode.h"

#include <algorithm>
#include <utility>

#include "bpf/lib/system_calls.h"
#include "metrics/entry.h"
#include "probes/bracket.h"
#include "probes/histogram_decode.h"

namespace tacho::probes {
namespace {

using metrics::Family;
using metrics::Sink;
using metrics::Type;
using metrics::Value;

constexpr std::array<std::string_view, TACHO_THREAD_STATES> kStates{"running", "runnable", "sleeping", "blocked",
                                                                    "iowait"};

struct Call {
  std::string_view name;
  int number;
};

/// By slot, from the second on.
constexpr std::array kCalls{
    Call{"epoll_wait", __NR_epoll_wait},
    Call{"epoll_pwait", __NR_epoll_pwait},
    Call{"epoll_pwait2", __NR_epoll_pwait2},
    Call{"poll", __NR_poll},
    Call{"ppoll", __NR_ppoll},
    Call{"select", __NR_select},
    Call{"pselect6", __NR_pselect6},
    Call{"futex", __NR_futex},
    Call{"read", __NR_read},
    Call{"readv", __NR_readv},
    Call{"recvfrom", __NR_recvfrom},
    Call{"recvmsg", __NR_recvmsg},
    Call{"write", __NR_write},
    Call{"writev", __NR_writev},
    Call{"sendto", __NR_sendto},
    Call{"sendmsg", __NR_sendmsg},
    Call{"sendfile", __NR_sendfile},
    Call{"accept", __NR_accept},
    Call{"accept4", __NR_accept4},
    Call{"connect", __NR_connect},
    Call{"nanosleep", __NR_nanosleep},
    Call{"clock_nanosleep", __NR_clock_nanosleep},
    Call{"restart_syscall", __NR_restart_syscall},
    Call{"rt_sigtimedwait", __NR_rt_sigtimedwait},
    Call{"pread64", __NR_pread64},
    Call{"pwrite64", __NR_pwrite64},
    Call{"fsync", __NR_fsync},
    Call{"fdatasync", __NR_fdatasync},
    Call{"openat", __NR_openat},
    Call{"fcntl", __NR_fcntl},
    Call{"flock", __NR_flock},
    Call{"io_uring_enter", __NR_io_uring_enter},
    Call{"wait4", __NR_wait4},
    Call{"vfork", __NR_vfork},
};
constexpr std::size_t kFirstCall = TACHO_OFFCPU_OTHER + 1;
static_assert(kCalls.size() + kFirstCall == TACHO_OFFCPU_CALLS);

constexpr auto kCallNames = [] {
  std::array<std::string_view, TACHO_OFFCPU_CALLS> names;
  names[TACHO_OFFCPU_NONE] = "none";
  names[TACHO_OFFCPU_OTHER] = "other";
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    names.at(kFirstCall + i) = kCalls.at(i).name;
  }
  return names;
}();

Value seconds(std::uint64_t ns) {
  return Value::nanoseconds(static_cast<std::int64_t>(ns));
}

struct SchedSource {
  const metrics::Histogram& runqueue_delay;
  const SchedTotals& totals;
  const CpuAllowance& allowance;
};
using SchedEntry = metrics::Entry<SchedSource>;

/// Also of the CPUs that threads are allowed to run on.
constexpr std::array<std::string_view, 1> kByThreads{"threads"};

constexpr std::array kEntries{
    SchedEntry{
        Family{
            "tacho_thread_state_seconds_total", Type::counter, "seconds",
            "Thread time by state, time in the current state included. running: on a CPU; runnable: waiting for a CPU; "
            "sleeping: interruptible sleep; iowait: any other sleep that the kernel flags as waiting for I/O; blocked: "
            "the rest.",
            "state", kStates}
            .seen_by(kByThreads),
        [](const SchedSource& s, Sink& out) { out.each(s.totals.state_ns, seconds); }},
    SchedEntry{
        Family{"tacho_offcpu_seconds_total", Type::counter, "seconds",
               "Thread time off CPU (sleeping, blocked, iowait) by the system call that the thread was in, waits in "
               "progress included. none: in no system call (page faults); other: in one that has no series of its own.",
               "syscall", kCallNames}
            .seen_by(kByThreads)
            .on_first_event(),
        [](const SchedSource& s, Sink& out) { out.each(s.totals.offcpu_ns, seconds); }},
    SchedEntry{Family{"tacho_runqueue_delay_seconds",
                      Type::histogram,
                      "seconds",
                      "Time that a thread waited for a CPU: from its wake-up or preemption until it ran.",
                      "",
                      {}}
                   .seen_by(kByThreads)
                   .with(metrics::Detail::mean)
                   .on_first_event(),
               [](const SchedSource& s, Sink& out) { out.add(s.runqueue_delay); }},
    SchedEntry{
        Family{
            "tacho_cpu_throttled_seconds_total",
            Type::counter,
            "seconds",
            "Time in which the CPU quota kept the target's cgroup from running, over all CPUs (cpu.stat); 0 without a "
            "cgroup of its own.",
            "",
            {}}
            .on_first_event(),
        [](const SchedSource& s, Sink& out) { out.add(seconds(s.allowance.throttled_ns)); }},
    SchedEntry{
        Family{"tacho_cpu_limit_cores",
               Type::gauge,
               "",
               "CPUs that the target may use: the minimum of the CPUs that are online, the quotas and cpusets of its "
               "cgroup and those above it, and the CPUs that its threads are allowed to run on.",
               "",
               {}}
            .seen_by(kByThreads),
        [](const SchedSource& s, Sink& out) { out.add(Value::number(s.allowance.cores)); }},
};

constexpr auto kFamilies = metrics::families_of(kEntries);

}  // namespace

std::array<std::uint8_t, TACHO_SYSCALLS> call_slots() {
  std::array<std::uint8_t, TACHO_SYSCALLS> slots{};
  slots.fill(TACHO_OFFCPU_OTHER);
  for (std::size_t i = 0; i < kCalls.size(); ++i) {
    if (std::cmp_less(kCalls.at(i).number, slots.size()) && kCalls.at(i).number >= 0) {
      slots.at(static_cast<std::size_t>(kCalls.at(i).number)) = static_cast<std::uint8_t>(kFirstCall + i);
    }
  }
  return slots;
}

std::span<const Family> sched_families() {
  return kFamilies;
}

namespace {

constexpr int kTries = 64;
constexpr int kTriesAtOnce = 16;

/// What a program may be changing.
void add(SchedTimes& sum, const sched_shard& shard) {
  for (std::size_t i = 0; i < sum.states.size(); ++i) {
    sum.states[i] += load(shard.states[i]);
  }
  for (std::size_t i = 0; i < sum.calls.size(); ++i) {
    sum.calls[i] += load(shard.calls[i]);
  }
}

void add(SchedTimes& sum, const SchedTimes& other) {
  for (std::size_t i = 0; i < sum.states.size(); ++i) {
    sum.states[i] += other.states[i];
  }
  for (std::size_t i = 0; i < sum.calls.size(); ++i) {
    sum.calls[i] += other.calls[i];
  }
}

template <class Member>
std::uint64_t total(std::span<const sched_shard* const> shards, Member member) {
  std::uint64_t sum = 0;
  for (const sched_shard* shard : shards) {
    sum += load(shard->*member);
  }
  return sum;
}

}  // namespace

SchedTimes read_times(std::span<const sched_shard* const> shards, std::int64_t (*clock)()) {
  for (int i = 1; i <= kTries; ++i) {
    const std::uint64_t ended = total(shards, &sched_shard::end);
    SchedTimes times;
    times.now_ns = clock();
    for (const sched_shard* shard : shards) {
      add(times, *shard);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    // Both only grow, and no shard's end is ahead of its beginning: equal sums are equal everywhere.
    if (total(shards, &sched_shard::begin) == ended) {
      return times;
    }
    if (i % kTriesAtOnce == 0) {
      ::sched_yield();
    }
  }
  SchedTimes times;
  times.now_ns = clock();
  for (const sched_shard* shard : shards) {
    const auto copy = [shard] {
      SchedTimes inside;
      add(inside, *shard);
      return inside;
    };
    add(times, read_bracketed(shard->begin, shard->end, copy, &times.in_step));
  }
  return times;
}

void add_affinity(ThreadLimits& limits, const sched_shard& shard, std::int64_t now_ns) {
  const std::uint64_t period = static_cast<std::uint64_t>(now_ns) >> TACHO_AFFINITY_SHIFT;
  for (const sched_affinity& affinity : shard.affinity) {
    if (load(affinity.period) + 1 < period) {
      continue;
    }
    for (std::size_t i = 0; i < limits.cpus.size(); ++i) {
      limits.cpus[i] |= load(affinity.cpus[i]);
    }
    limits.quota = std::max(limits.quota, load(affinity.quota));
  }
}

void SchedTotals::raise(const SchedTimes& times) {
  if (!times.in_step) {
    return;
  }
  for (std::size_t i = 0; i < state_ns.size(); ++i) {
    state_ns[i] = std::max(state_ns[i], times.states[i].total_ns(times.now_ns));
  }
  for (std::size_t i = 0; i < offcpu_ns.size(); ++i) {
    offcpu_ns[i] = std::max(offcpu_ns[i], times.calls[i].total_ns(times.now_ns));
  }
}

SchedTotals RisingTotals::raise(const SchedTotals& totals) {
  const auto largest = [](auto& rising, std::uint64_t value) { return rising.raise(value); };
  SchedTotals all;
  std::ranges::transform(state_ns_, totals.state_ns, all.state_ns.begin(), largest);
  std::ranges::transform(offcpu_ns_, totals.offcpu_ns, all.offcpu_ns.begin(), largest);
  return all;
}

void decode(const metrics::Histogram& runqueue_delay, const SchedTotals& totals, const CpuAllowance& allowance,
            metrics::Row& row) {
  metrics::append_all(kEntries, {.runqueue_delay = runqueue_delay, .totals = totals, .allowance = allowance}, row);
}

}  // namespace tacho::probes
