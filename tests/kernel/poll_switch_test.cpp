// Waits in polling calls as the scheduler tells of them (bpf/poll_switch.bpf.h), without any other probe.

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/known_work.h"
#include "kernel/support/polls.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/span.h"
#include "kernel/support/threads.h"

using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kThreads = 5;
constexpr int kLongMs = 20'000;

tacho::config::Config by_scheduler(const std::string& glob) {
  auto config = watching(glob);
  config.probes.poll.attach = tacho::config::Attach::scheduler;
  config.probes.socket.enabled = false;
  config.probes.sched.enabled = false;
  config.probes.anatomy.enabled = false;
  return config;
}

/// A cgroup, and a tacho that watches what is called like it.
struct Place {
  Cgroup cgroup{playground() + "/" + unique_name()};
  Running tacho{by_scheduler(cgroup.path() + "*")};

  Place() { REQUIRE(only_sleeps(tacho.page())); }
  [[nodiscard]] double value(const std::string& name) { return tacho.page().value(name); }
  [[nodiscard]] double completed() { return completed_polls(tacho.page(), {}); }
  [[nodiscard]] double seconds() { return completed_polls(tacho.page(), {}, "_sum"); }
  [[nodiscard]] bool becomes(const std::string& name, double wanted) {
    return tacho.wait_for([&] { return value(name) == wanted; });
  }
};

/// How often this thread has stopped running of its own accord.
long sleeps_so_far() {
  rusage usage{};
  must(::getrusage(RUSAGE_THREAD, &usage) == 0, "getrusage");
  return usage.ru_nvcsw;
}

bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');
  return name_end != std::string::npos && line.at(name_end + 2) == 'S';
}

void await_sleep(const std::atomic<pid_t>& thread) {
  while (thread == 0 || !is_asleep(thread)) {
    nap(100us);
  }
}

void run_as(int policy, int priority) {
  const sched_param parameters{.sched_priority = priority};
  must(::sched_setscheduler(0, policy, &parameters) == 0, "sched_setscheduler");
}

double seconds(const Moment& moment) {
  return static_cast<double>(moment.latest - moment.earliest) * 1e-9;
}

/// Threads that each wait for one event, which comes when the parent tells so.
Child waiters_in(const std::string& directory) {
  return Child(directory, [](Line& parent) {
    const Watchable gate(false);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < kThreads; ++i) {
        threads.emplace_back(
            [&gate, i] { must(poll_calls().at(i % poll_calls().size()).wait(gate, -1) == 1, "gate"); });
      }
      parent.tell();
      (void)parent.hear();
      gate.make_readable();
    }
    parent.tell();
    (void)parent.hear();
  });
}

}  // namespace

TEST_CASE("a polling call that is woken in vain goes on with the same wait") {
  constexpr int kInVain = 3;
  struct Seen {
    long sleeps;
    Span span;
  };
  Place place;
  for (std::size_t call = 0; call < poll_calls().size(); ++call) {
    CAPTURE(poll_calls().at(call).name);
    const double before = place.completed();
    const double before_seconds = place.seconds();
    const Shared<Seen> seen;
    Child child(place.cgroup.directory(), [&](Line& parent) {
      pin_to(0);
      const Watchable what(false);
      std::atomic<pid_t> poller_id = 0;
      Moment asleep;
      Moment end;
      {
        std::jthread poller([&] {
          const long sleeps = sleeps_so_far();
          poller_id = static_cast<pid_t>(::syscall(SYS_gettid));
          const Moment whole = timed([&] { must(poll_calls().at(call).wait(what, kLongMs) == 1, "wait"); });
          seen->sleeps = sleeps_so_far() - sleeps;
          seen->span.most = seconds(whole);
        });
        // Nothing of the poller's runs between the event and its end.
        run_as(SCHED_FIFO, 1);
        await_sleep(poller_id);
        asleep = timed([] {});
        for (int i = 0; i < kInVain; ++i) {
          what.make_readable();
          char taken = 0;
          must(::read(what.pipe(), &taken, 1) == 1, "read");
          await_sleep(poller_id);
        }
        parent.tell();
        (void)parent.hear();
        end = timed([&] { what.make_readable(); });
      }
      seen->span.least = between(asleep, end).least;
      parent.tell();
      (void)parent.hear();
    });
    (void)child.hear();
    CHECK(place.value("tacho_poll_waiters") == 1);
#ifdef __x86_64__
    CHECK(place.completed() == before);
#endif
    child.tell();
    (void)child.hear();
    await_rest(place.tacho, child);
    CHECK(seen->sleeps == kInVain + 1);
#ifdef __x86_64__
    CHECK(place.completed() - before == 1);
#else
    // Each sleep is a wait of its own there.
    CHECK(place.completed() - before == seen->sleeps);
#endif
    CHECK(place.seconds() - before_seconds >= seen->span.least - kInVain * 1e-3);
    CHECK(place.seconds() - before_seconds <= seen->span.most);
    CHECK(place.value("tacho_poll_waiters") == 0);
    CHECK(place.value("tacho_idle_seconds_total") == Approx(place.seconds()).epsilon(1e-9));
    child.tell();
    child.finish();
  }
}

TEST_CASE("calls that follow each other without a pause are waits of their own") {
  constexpr int kCalls = 60;
  constexpr int kTimeoutMs = 2;
  struct Seen {
    long sleeps;  // a thread that did not run for the whole timeout has no reason to sleep
    double most;  // seconds
  };
  Place place;
  const Shared<Seen> seen;
  Child child(place.cgroup.directory(), [&](Line& parent) {
    const Watchable silent(false);
    const long before = sleeps_so_far();
    for (const PollCall& call : poll_calls()) {
      for (int i = 0; i < kCalls; ++i) {
        const Moment moment = timed([&] { must(call.wait(silent, kTimeoutMs) == 0, "timeout"); });
        seen->most += seconds(moment);
      }
    }
    seen->sleeps = sleeps_so_far() - before;
    parent.tell();
    (void)parent.hear();
  });
  (void)child.hear();
  await_rest(place.tacho, child);
  const auto calls = static_cast<double>(kCalls * poll_calls().size());
  CHECK(static_cast<double>(seen->sleeps) >= calls * 0.9);
  CHECK(place.completed() == static_cast<double>(seen->sleeps));
  CHECK(place.seconds() >= calls * kTimeoutMs * 1e-3 * 0.5);
  CHECK(place.seconds() <= seen->most);
  CHECK(place.value("tacho_threads") == 1);
  child.tell();
  child.finish();
}

TEST_CASE("a call that a signal interrupts is a wait, and the next one another") {
  constexpr int kSignals = 7;
  Place place;
  Child child(place.cgroup.directory(), [&](Line& parent) {
    struct sigaction action{};
    action.sa_handler = [](int) {};
    must(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
    const Watchable what(false);
    std::atomic<pid_t> poller_id = 0;
    std::atomic<int> interrupted = 0;
    {
      std::jthread poller([&] {
        poller_id = static_cast<pid_t>(::syscall(SYS_gettid));
        while (poll_calls().front().wait(what, kLongMs) == -EINTR) {
          ++interrupted;
        }
      });
      for (int i = 0; i < kSignals; ++i) {
        await_sleep(poller_id);
        must(::syscall(SYS_tgkill, ::getpid(), poller_id.load(), SIGUSR1) == 0, "tgkill");
        while (interrupted <= i) {
          nap(100us);
        }
      }
      await_sleep(poller_id);
      what.make_readable();
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)child.hear();
  await_rest(place.tacho, child);
  CHECK(place.completed() == kSignals + 1);
  child.tell();
  child.finish();
}

TEST_CASE("sleeps in other system calls are no polls, nor are polls that return at once") {
  Place place;
  Child child(place.cgroup.directory(), [](Line& parent) {
    const Watchable readable(true);
    const Watchable silent(false);
    nap(5ms);
    for (const PollCall& call : poll_calls()) {
      must(call.wait(readable, -1) == 1, "readable");
      must(call.wait(silent, 0) == 0, "nonblocking");
    }
    nap(5ms);
    parent.tell();
    (void)parent.hear();
  });
  (void)child.hear();
  await_rest(place.tacho, child);
  CHECK(place.completed() == 0);
  CHECK(place.value("tacho_threads") == 0);
  CHECK(place.value("tacho_idle_seconds_total") == 0);
  child.tell();
  child.finish();
}

TEST_CASE("threads that wait are in progress until they run again, and their last wait counts when they end") {
  Place place;
  Child child = waiters_in(place.cgroup.directory());
  (void)child.hear();
  REQUIRE(place.becomes("tacho_poll_waiters", kThreads));
  CHECK(place.value("tacho_threads") == kThreads);
  CHECK(place.completed() == 0);
  child.tell();
  (void)child.hear();
  CHECK(place.becomes("tacho_threads", 0));
  CHECK(place.value("tacho_poll_waiters") == 0);
  CHECK(place.completed() == kThreads);
  CHECK(place.value("tacho_idle_seconds_total") == Approx(place.seconds()).epsilon(1e-9));
  child.tell();
  child.finish();
}

TEST_CASE("threads that are killed while the scheduler has them wait leave no waiter behind") {
  Place place;
  Child child = waiters_in(place.cgroup.directory());
  (void)child.hear();
  REQUIRE(place.becomes("tacho_poll_waiters", kThreads));
  const double idle = place.value("tacho_idle_seconds_total");
  child.kill();
  CHECK(place.becomes("tacho_threads", 0));
  CHECK(place.value("tacho_poll_waiters") == 0);
  CHECK(place.value("tacho_idle_seconds_total") >= idle);
}

TEST_CASE("waits that are older than tacho end with the thread's next run") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Child child = waiters_in(cgroup.directory());
  (void)child.hear();
  // Half of a minute at most: whoever has told is about to wait, or waits.
  while (!all_asleep(child.pid(), kThreads + 1)) {
    nap(1ms);
  }
  Running tacho(by_scheduler(cgroup.path()));
  const Moment adopted = timed([] {});
  CHECK(tacho.page().value("tacho_poll_waiters") == kThreads);
  CHECK(tacho.page().value("tacho_threads") == kThreads);
  const Moment told = timed([&] { child.tell(); });
  (void)child.hear();
  CHECK(tacho.wait_for([&] { return tacho.page().value("tacho_threads") == 0; }));
  const Page page = tacho.page();
  CHECK(completed_polls(page, {}) == kThreads);
  CHECK(completed_polls(page, {}, "_sum") >= between(adopted, told).least * kThreads);
  CHECK(page.value("tacho_poll_waiters") == 0);
  child.tell();
  child.finish();
}

TEST_CASE("a wait belongs to the target in which it began, the next one to that of its cgroup then") {
  Place place;
  const Cgroup other(place.cgroup.path() + "-other");
  const Labels there{{"cgroup", other.path()}};
  const Labels here{{"cgroup", place.cgroup.path()}};
  REQUIRE(place.tacho.wait_for([&] { return place.tacho.watches(there); }));
  const auto value = [&](const char* name, const Labels& target) { return place.tacho.page().value(name, target); };
  Child child(place.cgroup.directory(), [](Line& parent) {
    const Watchable gate(false);
    const Watchable silent(false);
    std::jthread poller([&] {
      must(poll_calls().front().wait(gate, -1) == 1, "gate");
      must(poll_calls().front().wait(silent, 1) == 0, "second");
      parent.tell();
      (void)parent.hear();
    });
    (void)parent.hear();
    gate.make_readable();
  });
  REQUIRE(place.tacho.wait_for([&] { return value("tacho_poll_waiters", here) == 1; }));
  move_to(other.directory(), child.pid());
  child.tell();
  (void)child.hear();
  await_rest(place.tacho, child, 2);
  CHECK(completed_polls(place.tacho.page(), here) == 1);
  CHECK(completed_polls(place.tacho.page(), there) == 1);
  CHECK(value("tacho_poll_waiters", here) == 0);
  CHECK(value("tacho_threads", here) == 0);
  CHECK(value("tacho_threads", there) == 1);
  child.tell();
  child.finish();
}

TEST_CASE("the scheduler tells of a process that is a target by its port") {
  Child child("", [](Line& parent) {
    const tacho::UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    (void)parent.hear();
    const Watchable silent(false);
    for (int i = 0; i < 3; ++i) {
      must(poll_calls().front().wait(silent, 1) == 0, "timeout");
    }
    parent.tell();
    (void)parent.hear();
  });
  auto config = by_scheduler("");
  tacho::config::TargetRule rule;
  rule.name = "p";
  rule.process = tacho::config::ProcessSelector{.exe = {}, .port = static_cast<std::uint16_t>(child.hear())};
  config.targets = {rule};
  Running tacho(config);
  REQUIRE(tacho.wait_for([&] { return tacho.watches({{"target", "p"}}); }));
  child.tell();
  (void)child.hear();
  await_rest(tacho, child);
  CHECK(completed_polls(tacho.page(), {{"target", "p"}}) == 3);
  CHECK(tacho.page().value("tacho_threads", {{"target", "p"}}) == 1);
  child.tell();
  child.finish();
}
