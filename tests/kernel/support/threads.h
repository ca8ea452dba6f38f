#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "kernel/support/child.h"
#include "kernel/support/page.h"
#include "kernel/support/running.h"

// What threads did, as the sched probe tells and as the kernel's own accounting does.

namespace tacho::kernel_test {

/// Seconds by state (tacho_thread_state_seconds_total).
struct ThreadStates {
  double running = 0;
  double runnable = 0;
  double sleeping = 0;
  double blocked = 0;
  double iowait = 0;

  [[nodiscard]] double sum() const { return running + runnable + sleeping + blocked + iowait; }
  [[nodiscard]] double off_cpu() const { return sleeping + blocked + iowait; }
  ThreadStates operator-(const ThreadStates& other) const;
};

ThreadStates thread_states(const Page& page, const Labels& target);

/// tacho_offcpu_seconds_total of one system call.
double off_cpu_in(const Page& page, const Labels& target, const std::string& call);
/// The same of all.
double off_cpu(const Page& page, const Labels& target);

/// /proc/PID/task/TID/schedstat of all threads of a process, in seconds.
struct SchedStat {
  double running = 0;
  double runnable = 0;
  SchedStat operator-(const SchedStat& other) const { return {running - other.running, runnable - other.runnable}; }
};
SchedStat schedstat(pid_t process);

/// Whether all threads of a process are off CPU in a system call (/proc/PID/task/TID/syscall), and there are so many.
bool all_asleep(pid_t process, std::size_t threads);

/// Uses up so much CPU time of this thread (CLOCK_THREAD_CPUTIME_ID).
void spin(double seconds);
/// This thread runs on that CPU only.
void pin_to(unsigned cpu);

/// Checks that the target has so many threads, by how its thread time grows; `tacho` is let work meanwhile.
void check_threads(Running& tacho, const Labels& target, std::size_t threads);

}  // namespace tacho::kernel_test
