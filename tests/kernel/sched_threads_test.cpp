// Which threads count, from when, until when: births, deaths, moves, and what was there before.

#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/span.h"
#include "kernel/support/threads.h"
#include "kernel/support/wire.h"

using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kSleepers = 4;

/// A process with so many threads that sleep in read() until it is told to go on, and the main thread that does too.
Child sleepers_in(const std::string& directory) {
  return Child(directory, [](Line& parent) {
    std::array<int, 2> gate{};
    must(::pipe(gate.data()) == 0, "pipe");
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < kSleepers; ++i) {
        threads.emplace_back([&gate] {
          char byte{};
          must(::read(gate[0], &byte, 1) == 0, "gate");
        });
      }
      parent.tell();
      (void)parent.hear();
      ::close(gate[1]);
    }
    parent.tell();
    (void)parent.hear();
  });
}

Labels label(const Cgroup& cgroup) {
  return {{"cgroup", cgroup.path()}};
}

/// Thread time by state that comes together in a fifth of a second.
ThreadStates growth(Running& tacho, const Labels& target) {
  const ThreadStates first = thread_states(tacho.page(), target);
  const auto start = now_ns();
  REQUIRE(tacho.wait_for([&] { return now_ns() > start + 200'000'000; }));
  return thread_states(tacho.page(), target) - first;
}

}  // namespace

TEST_CASE("states that are under way grow by the time that passes, although nothing happens") {
  const Watched where;
  Child child = sleepers_in(where.directory());
  (void)child.hear();
  REQUIRE(shared().wait_for([&] { return all_asleep(child.pid(), kSleepers + 1); }));
  ThreadStates first;
  ThreadStates second;
  double read_before = 0;
  double read_after = 0;
  const auto look = [&](ThreadStates& states, double& in_read) {
    return timed([&] {
      const Page page = shared().page();
      states = thread_states(page, label(where.cgroup()));
      in_read = off_cpu_in(page, label(where.cgroup()), "read");
    });
  };
  const Moment before = look(first, read_before);
  REQUIRE(shared().wait_for([&] { return now_ns() > before.latest + 200'000'000; }));
  const Moment after = look(second, read_after);
  const Span passed = between(before, after);
  const ThreadStates grown = second - first;
  CHECK(grown.sleeping >= passed.least * (kSleepers + 1));
  CHECK(grown.sleeping <= passed.most * (kSleepers + 1));
  CHECK(read_after - read_before == Approx(grown.sleeping).margin(1e-6));
  CHECK(grown.running + grown.runnable + grown.blocked + grown.iowait == 0);
  child.tell();
  (void)child.hear();
  child.tell();
  child.finish();
}

TEST_CASE("threads that were there before the target count from when it is watched") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Child child = sleepers_in(cgroup.directory());
  (void)child.hear();
  Child spinner(cgroup.directory(), [](Line& parent) {
    parent.tell();
    spin(300);
  });
  (void)spinner.hear();
  REQUIRE(shared().wait_for([&] { return all_asleep(child.pid(), kSleepers + 1); }));
  for (const auto attach : {tacho::config::Attach::automatic, tacho::config::Attach::raw_tracepoint}) {
    auto config = watching(cgroup.path());
    config.probes.socket.enabled = false;
    config.probes.poll.enabled = false;
    config.probes.sched.attach = attach;
    Running later(config);
    const Labels target{{"target", "t"}};
    check_threads(later, target, kSleepers + 2);
    const ThreadStates grown = growth(later, target);
    CAPTURE(grown.running, grown.runnable, grown.sleeping, grown.blocked, grown.iowait);
    CHECK(grown.sleeping >= 0.2 * (kSleepers + 1));
    CHECK(grown.running > 0);
    CHECK(grown.running + grown.runnable >= 0.19);
    CHECK(thread_states(later.page(), target).sum() < 60);
  }
  spinner.kill();
  child.tell();
  (void)child.hear();
  child.tell();
  child.finish();
}

TEST_CASE("the states of short-lived threads add up to their lives") {
  constexpr int kThreads = 200;
  const Watched where;
  const Shared<Span> lives;
  Child child(where.directory(), [&lives](Line& parent) {
    parent.tell();
    (void)parent.hear();
    for (int i = 0; i < kThreads; ++i) {
      Moment inside;
      const Moment outside = timed([&inside] {
        std::thread([&inside] {
          inside.earliest = now_ns();
          std::this_thread::sleep_for(100us);
          inside.latest = now_ns();
        }).join();
      });
      *lives += {static_cast<double>(inside.latest - inside.earliest) * 1e-9,
                 static_cast<double>(outside.latest - outside.earliest) * 1e-9};
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)child.hear();
  const Labels target = label(where.cgroup());
  ThreadStates first;
  ThreadStates second;
  const auto look = [&](ThreadStates& states) {
    REQUIRE(shared().wait_for([&] { return all_asleep(child.pid(), 1); }));
    return timed([&] { states = thread_states(shared().page(), target); });
  };
  const Moment before = look(first);
  child.tell();
  (void)child.hear();
  const Moment after = look(second);
  const Span main = between(before, after);
  const double sum = (second - first).sum();
  CHECK(sum >= main.least + lives->least);
  // A thread that has let its joiner go may have to wait for a CPU to end on.
  CHECK(sum <= main.most + lives->most * 1.05 + 0.05);
  check_threads(shared(), target, 1);
  child.tell();
  child.finish();
  CHECK(shared().wait_for([&] { return growth(shared(), target).sum() == 0; }));
}

TEST_CASE("threads that are killed leave nothing that grows") {
  const Watched where;
  Child child = sleepers_in(where.directory());
  (void)child.hear();
  REQUIRE(shared().wait_for([&] { return all_asleep(child.pid(), kSleepers + 1); }));
  const Labels target = label(where.cgroup());
  check_threads(shared(), target, kSleepers + 1);
  const double before = thread_states(shared().page(), target).sum();
  child.kill();
  CHECK(shared().wait_for([&] { return growth(shared(), target).sum() == 0; }));
  CHECK(thread_states(shared().page(), target).sum() >= before);
}

TEST_CASE("threads that move count where they are, from their next switch on") {
  const Watched from;
  const Watched to;
  Child child = sleepers_in(from.directory());
  (void)child.hear();
  REQUIRE(shared().wait_for([&] { return all_asleep(child.pid(), kSleepers + 1); }));
  check_threads(shared(), label(from.cgroup()), kSleepers + 1);
  move_to(to.directory(), child.pid());
  child.tell();
  (void)child.hear();
  // The sleepers have woken over there and ended; the main thread sleeps again.
  CHECK(shared().wait_for([&] { return growth(shared(), label(from.cgroup())).sum() == 0; }));
  check_threads(shared(), label(to.cgroup()), 1);
  child.tell();
  child.finish();
}

TEST_CASE("threads that move to where nobody watches are nobody's, and come back") {
  const Watched where;
  const Cgroup outside("/" + playground().substr(1) + "-outside");
  Child child(where.directory(), [](Line& parent) {
    do {
      parent.tell();
    } while (parent.hear() != 0);
  });
  (void)child.hear();
  const Labels target = label(where.cgroup());
  check_threads(shared(), target, 1);
  move_to(outside.directory(), child.pid());
  child.tell();
  (void)child.hear();
  CHECK(shared().wait_for([&] { return growth(shared(), target).sum() == 0; }));
  move_to(where.directory(), child.pid());
  child.tell();
  (void)child.hear();
  check_threads(shared(), target, 1);
  child.tell(0);
  child.finish();
}

TEST_CASE("the limit is what CPUs there are, and what threads are allowed to run on") {
  const auto online = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  const auto limit_of = [](const Watched& where) { return where.value("tacho_cpu_limit_cores"); };
  const Watched pinned;
  const Watched spread;
  CHECK(limit_of(pinned) == online);
  Child one(pinned.directory(), [](Line& parent) {
    pin_to(0);
    parent.tell();
    (void)parent.hear();
    parent.tell();
    (void)parent.hear();
  });
  Child free(spread.directory(), [](Line& parent) {
    parent.tell();
    (void)parent.hear();
  });
  (void)one.hear();
  (void)free.hear();
  CHECK(limit_of(spread) == online);
  // What it was allowed before it was pinned is forgotten after a while, and it has to run for that.
  if (online > 1) {
    const Watched late;
    Child pinned_first("", [directory = late.directory()](Line& parent) {
      pin_to(0);
      move_to(directory, ::getpid());
      ::sched_yield();
      parent.tell();
      (void)parent.hear();
      parent.tell();
      (void)parent.hear();
    });
    (void)pinned_first.hear();
    pinned_first.tell();
    (void)pinned_first.hear();
    CHECK(shared().wait_for([&] { return limit_of(late) == 1; }));  // found by the next sample
    pinned_first.tell();
    pinned_first.finish();
  }
  one.tell();
  (void)one.hear();
  one.tell();
  one.finish();
  free.tell();
  free.finish();
}

TEST_CASE("a quota limits the CPUs, and time kept from running by it is told") {
  const std::string controllers = Cgroup::mount() + "/cgroup.controllers";
  std::string available;
  std::getline(std::ifstream(controllers), available);
  const auto enable = [](const std::string& directory) {
    std::ofstream file(directory + "/cgroup.subtree_control");
    file << "+cpu" << std::flush;
    return static_cast<bool>(file);
  };
  if ((" " + available + " ").find(" cpu ") == std::string::npos || !enable(Cgroup::mount()) ||
      !enable(Cgroup::mount() + playground())) {
    WARN("skipped: the controller `cpu` is not to be had in " << controllers << " (v2 has \"" << available << "\")");
    return;
  }
  const Watched where;
  std::ofstream(where.directory() + "/cpu.max") << "20000 100000" << std::flush;
  Child child(where.directory(), [](Line& parent) {
    spin(0.1);
    parent.tell();
    (void)parent.hear();
  });
  (void)child.hear();
  // The quota is read again every ten seconds.
  REQUIRE(shared().wait_for([&] { return where.value("tacho_cpu_limit_cores") == Approx(0.2); }, 15s));
  child.tell();
  child.finish();
  Child again(where.directory(), [](Line& parent) {
    spin(0.1);
    parent.tell();
    (void)parent.hear();
  });
  (void)again.hear();
  // Five periods of 100 ms are needed, each with 80 ms of waiting.
  CHECK(where.value("tacho_cpu_throttled_seconds_total") >= 0.2);
  again.tell();
  again.finish();
}

TEST_CASE("of a thread that is no longer watched when it ends nothing is left in the table") {
  auto config = watching(playground() + "/*");
  config.probes.sched.attach = tacho::config::Attach::raw_tracepoint;
  config.probes.socket.enabled = false;
  config.probes.poll.enabled = false;
  Running tacho(config);
  const auto entries = [&tacho] {
    return tacho.page().value("tacho_map_entries", {{"probe", "sched"}, {"map", "sched_states"}});
  };
  const Cgroup watched(playground() + "/" + unique_name());
  REQUIRE(tacho.wait_for([&] { return tacho.watches({{"cgroup", watched.path()}}); }));
  const double before = entries();
  Child child = sleepers_in(watched.directory());
  (void)child.hear();
  REQUIRE(tacho.wait_for([&] { return entries() >= before + kSleepers + 1; }));
  move_to(Cgroup::mount() + playground(), child.pid());  // which the pattern does not match
  child.tell();
  (void)child.hear();
  child.tell();
  child.finish();
  CHECK(tacho.wait_for([&] { return entries() == before; }));
}
