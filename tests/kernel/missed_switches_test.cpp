// A thread of which no event tells that it runs again: its time on the CPU is that which the fair scheduler counted.

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>

#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/missed.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/threads.h"

using namespace tacho::kernel_test;

namespace {

constexpr int kRounds = 10;
/// So long it runs with its program away, and so long with it back; its account begins anew where it is preempted.
constexpr auto kRun = std::chrono::milliseconds(20);
/// By then a thread that is about to sleep does.
constexpr auto kFallAsleep = std::chrono::milliseconds(5);

struct Round {
  std::atomic<bool> spins = false;
  std::atomic<bool> is_seen_again = false;
  std::atomic<double> cpu = 0;  // seconds, of all rounds
};

double cpu_of_this_thread() {
  timespec time{};
  must(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0, "clock_gettime");
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

TEST_CASE("a thread whose switching in was missed has its time on the CPU when it is switched out") {
  const Watched where;
  if (!Missed("sched_switched").any()) {
    WARN("skipped: sched_switched cannot be taken from its tracepoint and come back here");
    return;
  }
  const Labels running{{"state", "running"}};
  const Shared<Round> round;
  Child child(where.directory(), [&](Line& parent) {
    for (int i = 0; i < kRounds; ++i) {
      parent.tell();
      (void)parent.hear();
      const double before = cpu_of_this_thread();
      round->spins = true;
      while (!round->is_seen_again) {
      }
      round->cpu = round->cpu + cpu_of_this_thread() - before;
    }
    parent.tell();
    (void)parent.hear();
  });
  double before = 0;
  for (int i = 0; i < kRounds; ++i) {
    (void)child.hear();
    if (i == 0) {
      before = where.value("tacho_thread_state_seconds_total", running);
    }
    round->spins = false;
    round->is_seen_again = false;
    {
      std::this_thread::sleep_for(kFallAsleep);
      const Missed missed("sched_switched");
      child.tell();
      std::this_thread::sleep_for(kRun);
      while (!round->spins) {
      }
    }
    std::this_thread::sleep_for(kRun);
    round->is_seen_again = true;
  }
  (void)child.hear();
  const double counted = where.value("tacho_thread_state_seconds_total", running) - before;
  const double known = round->cpu;
  CAPTURE(counted, known);
  CHECK(counted >= known * 0.7);
  CHECK(counted <= known * 1.1 + 0.01);
  child.tell();
  child.finish();
}
