#include "kernel/support/threads.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "kernel/support/span.h"
#include "kernel/support/wire.h"
#include "probes/sched_decode.h"

namespace tacho::kernel_test {
namespace {

std::filesystem::path tasks_of(pid_t process) {
  return "/proc/" + std::to_string(process) + "/task";
}

Labels with(Labels labels, const std::string& name, const std::string& value) {
  labels[name] = value;
  return labels;
}

}  // namespace

ThreadStates ThreadStates::operator-(const ThreadStates& other) const {
  return {.running = running - other.running,
          .runnable = runnable - other.runnable,
          .sleeping = sleeping - other.sleeping,
          .blocked = blocked - other.blocked,
          .iowait = iowait - other.iowait};
}

ThreadStates thread_states(const Page& page, const Labels& target) {
  const auto seconds = [&](const char* state) {
    return page.value("tacho_thread_state_seconds_total", with(target, "state", state));
  };
  return {.running = seconds("running"),
          .runnable = seconds("runnable"),
          .sleeping = seconds("sleeping"),
          .blocked = seconds("blocked"),
          .iowait = seconds("iowait")};
}

double off_cpu_in(const Page& page, const Labels& target, const std::string& call) {
  return page.value("tacho_offcpu_seconds_total", with(target, "syscall", call));
}

double off_cpu(const Page& page, const Labels& target) {
  const auto families = probes::sched_families();
  const auto family = std::ranges::find(families, "tacho_offcpu_seconds_total", &metrics::Family::name);
  double sum = 0;
  for (const std::string_view call : family->values) {
    sum += off_cpu_in(page, target, std::string(call));
  }
  return sum;
}

SchedStat schedstat(pid_t process) {
  SchedStat sum;
  for (const auto& task : std::filesystem::directory_iterator(tasks_of(process))) {
    double running = 0;
    double runnable = 0;
    std::ifstream(task.path() / "schedstat") >> running >> runnable;
    sum.running += running * 1e-9;
    sum.runnable += runnable * 1e-9;
  }
  return sum;
}

bool all_asleep(pid_t process, std::size_t threads) {
  std::size_t seen = 0;
  for (const auto& task : std::filesystem::directory_iterator(tasks_of(process))) {
    // Not the state in `stat`: a thread is preempted there, too, between saying that it will sleep and doing so.
    // Telling the system call makes the kernel see whether the thread is off its run queue.
    std::string call;
    std::ifstream(task.path() / "syscall") >> call;
    if (call.empty() || call == "running") {
      return false;
    }
    ++seen;
  }
  return seen == threads;
}

void spin(double seconds) {
  const auto used = [] {
    timespec time{};
    must(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0, "clock_gettime");
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double end = used() + seconds;
  while (used() < end) {
  }
}

void pin_to(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  must(::sched_setaffinity(0, sizeof(set), &set) == 0, "sched_setaffinity");
}

void check_threads(Running& tacho, const Labels& target, std::size_t threads) {
  ThreadStates first;
  ThreadStates second;
  // The first look is the one that may take long: it removes targets that are gone.
  (void)tacho.page();
  const Moment before = timed([&] { first = thread_states(tacho.page(), target); });
  REQUIRE(tacho.wait_for([&] { return now_ns() > before.latest + 300'000'000; }));
  const Moment after = timed([&] { second = thread_states(tacho.page(), target); });
  const Span passed = between(before, after);
  const double grown = (second - first).sum();
  CAPTURE(threads, grown, passed.least, passed.most);
  CHECK(grown >= passed.least * static_cast<double>(threads) - 1e-3);
  CHECK(grown <= passed.most * static_cast<double>(threads) + 1e-3);
}

}  // namespace tacho::kernel_test
