// A thread of which no event tells that it runs again: its time on the CPU, and its wait for one, are those that the
// scheduler counted.

#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <string>
#include <thread>

#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/known_work.h"
#include "kernel/support/missed.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/threads.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
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

/// How often this thread was switched out though it could run.
long interruptions() {
  rusage used{};
  must(::getrusage(RUSAGE_THREAD, &used) == 0, "getrusage");
  return used.ru_nivcsw;
}

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

// The wait was before the request was read, and by the events it goes on behind that.
TEST_CASE("a wait for a CPU whose end was missed is no part of the request that is read behind it") {
  constexpr unsigned kCpu = 0;
  constexpr double kHogged = 0.0012;  // seconds, less than a slice
  constexpr int kTries = 200;
  constexpr int kLeast = 4;  // of them are not interrupted
  constexpr double kSlack = 50e-6;
  constexpr auto kNap = std::chrono::milliseconds(1);
  struct Turn {
    std::atomic<bool> is_read = false;
    std::atomic<bool> is_seen_again = false;
    std::atomic<bool> is_interrupted = false;  // before that: who is switched out unseen is none of this
    std::atomic<double> waited_before = 0;     // seconds for the CPU
    std::atomic<double> waited_within = 0;
    std::atomic<double> woken_late = 0;  // by the clock: a virtual CPU that idles may take 0.1 ms to run again
  };
  const Watched where;
  if (!Missed("sched_switched").any()) {
    WARN("skipped: sched_switched cannot be taken from its tracepoint and come back here");
    return;
  }
  const Shared<Turn> turn;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line& /*parent*/) {
    pin_to(kCpu);
    // Who wakes it, or runs when it is woken, goes on.
    const sched_param none{};
    must(::sched_setscheduler(0, SCHED_BATCH, &none) == 0, "SCHED_BATCH");
    const ThreadClock clock;
    become_known();
    for (int i = 0; i < kTries; ++i) {
      const ThreadClock::Reading before = clock.read();
      receive_once(connection, 10);
      const ThreadClock::Reading began = clock.read();
      const long interrupted = interruptions();
      turn->is_read = true;
      while (!turn->is_seen_again) {
      }
      turn->is_interrupted = interruptions() > interrupted;
      const ThreadClock::Reading sleeps = clock.read();
      nap(kNap);
      const ThreadClock::Reading awake = clock.read();
      turn->waited_before = (began - before).runqueue;
      turn->waited_within = (awake - began).runqueue;
      turn->woken_late = (awake - sleeps).wall - std::chrono::duration<double>(kNap).count();
      send_once(connection, 20);
    }
  });
  Child hog("", [&](Line& parent) {
    pin_to(kCpu);
    for (int i = 0; i < kTries; ++i) {
      (void)parent.hear();
      parent.tell();
      spin(kHogged);
    }
  });
  const UniqueFd client = connect_to(server);
  double counted = 0;
  double waited_before = 0;
  double waited_within = 0;
  double woken_late = 0;
  int good = 0;
  for (int i = 0; i < kTries; ++i) {
    std::this_thread::sleep_for(kFallAsleep);
    turn->is_read = false;
    turn->is_seen_again = false;
    const double earlier = part(where, TACHO_PART_RUNQUEUE);
    {
      const Missed missed("sched_switched");
      hog.tell();
      (void)hog.hear();
      send_once(client, 10);
      while (!turn->is_read) {
        nap(std::chrono::microseconds(200));
      }
    }
    turn->is_seen_again = true;
    receive_once(client, 20);
    if (turn->is_interrupted) {
      continue;
    }
    ++good;
    counted += part(where, TACHO_PART_RUNQUEUE) - earlier;
    waited_before += turn->waited_before;
    waited_within += turn->waited_within;
    woken_late += turn->woken_late;
  }
  (void)server.hear();
  CAPTURE(good, counted, waited_before, waited_within, woken_late);
  REQUIRE(good >= kLeast);
  REQUIRE(waited_before > good * kSlack + woken_late);
  CHECK(counted >= waited_within - good * kSlack);
  CHECK(counted <= waited_within + woken_late + good * kSlack);
  close_connection(server);
  finish(server);
  hog.finish();
}
