// Polling calls: outcomes, durations, both ways of attaching.

#include <sys/time.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <string>

#include "kernel/support/child.h"
#include "kernel/support/polls.h"
#include "kernel/support/running.h"
#include "kernel/support/span.h"

using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kReady = 23;
constexpr int kTimeouts = 3;
constexpr int kNonblocking = 5;  // each time once with and once without something to read
constexpr int kErrors = 2;       // and one that a signal interrupts
constexpr int kTimeoutMs = 5;
constexpr int kLongMs = 10'000;

// A sleep begins within the call: its beginning may be that much later.
constexpr double kLateSleep = 0.2;

struct Durations {
  Span ready;
  Span timeout;
  Span nonblocking;
  Span error;
  Span interrupted;  // part of `error`
};

/// Makes the call so often with each outcome, and sums up how long it took.
void make_calls(const PollCall& call, Durations& durations) {
  const auto measured = [](Span& sum, auto work) {
    const Moment moment = timed(work);
    sum += {0, static_cast<double>(moment.latest - moment.earliest) * 1e-9};
  };
  const Watchable readable(true);
  const Watchable silent(false);
  for (int i = 0; i < kReady; ++i) {
    measured(durations.ready, [&] { must(call.wait(readable, i % 2 == 0 ? kLongMs : -1) == 1, "ready"); });
  }
  for (int i = 0; i < kTimeouts; ++i) {
    measured(durations.timeout, [&] { must(call.wait(silent, kTimeoutMs) == 0, "timeout"); });
    durations.timeout.least += kTimeoutMs * 1e-3;
  }
  for (int i = 0; i < kNonblocking; ++i) {
    measured(durations.nonblocking, [&] {
      must(call.wait(readable, 0) == 1, "nonblocking, ready");
      must(call.wait(silent, 0) == 0, "nonblocking, not ready");
    });
  }
  for (int i = 0; i < kErrors; ++i) {
    measured(durations.error, [&] { must(call.fail() < 0, "error"); });
  }
  struct sigaction action{};
  action.sa_handler = [](int) {};
  must(::sigaction(SIGALRM, &action, nullptr) == 0, "sigaction");
  const itimerval soon{.it_interval = {}, .it_value = {.tv_sec = 0, .tv_usec = 10'000}};
  must(::setitimer(ITIMER_REAL, &soon, nullptr) == 0, "setitimer");
  measured(durations.interrupted, [&] { must(call.wait(silent, kLongMs) == -EINTR, "EINTR"); });
  durations.error += durations.interrupted;
}

double outcome(const Page& page, const std::string& cgroup, const char* which) {
  return page.value("tacho_polls_total", {{"cgroup", cgroup}, {"outcome", which}});
}

double duration(const Page& page, const std::string& cgroup, const std::string& suffix) {
  return page.value("tacho_poll_duration_seconds" + suffix, {{"cgroup", cgroup}});
}

void check_outcomes(const Page& page, const std::string& cgroup, const Durations& durations) {
  Span all{};
  double calls = 0;
  const auto check = [&](const char* which, double count, const Span& span) {
    CAPTURE(which);
    CHECK(outcome(page, cgroup, which) == count);
    calls += count;
    all += span;
  };
  const bool complete = !only_sleeps(page);
  check("ready", complete ? kReady : 0, complete ? durations.ready : Span{});
  check("timeout", complete ? kTimeouts : 0, complete ? durations.timeout : Span{});
  check("nonblocking", complete ? 2 * kNonblocking : 0, complete ? durations.nonblocking : Span{});
  check("error", complete ? kErrors + 1 : 0, complete ? durations.error : Span{});
  Span slept{.least = durations.timeout.least * (1 - kLateSleep), .most = durations.timeout.most};
  slept += durations.interrupted;
  check("blocked", complete ? 0 : kTimeouts + 1, complete ? Span{} : slept);
  CHECK(duration(page, cgroup, "_count") == calls);
  CHECK(duration(page, cgroup, "_sum") >= all.least);
  CHECK(duration(page, cgroup, "_sum") <= all.most);
  CHECK(page.value("tacho_poll_waiters", {{"cgroup", cgroup}}) == 0);
}

/// Makes every call in a process of its own in the cgroup; checks after each.
void check_call(Running& tacho, const std::string& cgroup_path, const PollCall& call) {
  CAPTURE(call.name);
  const Shared<Durations> durations;
  Child child(Cgroup::mount() + cgroup_path, [&](Line& parent) {
    make_calls(call, *durations);
    parent.tell();
    (void)parent.hear();
  });
  (void)child.hear();
  await_rest(tacho, child);
  const Page page = tacho.page();
  check_outcomes(page, cgroup_path, *durations);
  CHECK(page.value("tacho_threads", {{"cgroup", cgroup_path}}) == 1);
  const double waited = page.value("tacho_idle_seconds_total", {{"cgroup", cgroup_path}});
  CHECK(waited == Approx(duration(page, cgroup_path, "_sum")).epsilon(1e-9));
  child.tell();
  child.finish();
}

}  // namespace

TEST_CASE("every polling call is counted by its outcome, with its duration") {
  for (const PollCall& call : poll_calls()) {
    const Watched where;
    check_call(shared(), where.path(), call);
  }
}

TEST_CASE("the other ways of attaching count the same, the scheduler only those that sleep") {
  using tacho::config::Attach;
  const std::map<Attach, std::string> methods{
      {Attach::tracepoint, "tracepoint"}, {Attach::raw_tracepoint, "raw_tracepoint"}, {Attach::scheduler, "scheduler"}};
  for (const auto& [attach, method] : methods) {
    CAPTURE(method);
    auto config = watching(playground() + "/*");
    config.probes.poll.attach = attach;
    config.probes.socket.enabled = false;
    Running tacho(config);
    CHECK(tacho.page().value("tacho_probe_attached", {{"probe", "poll"}, {"hook", "poll"}, {"method", method}}) == 1);
    for (const PollCall& call : poll_calls()) {
      const Cgroup cgroup(playground() + "/" + unique_name());
      REQUIRE(tacho.wait_for([&] { return tacho.watches({{"cgroup", cgroup.path()}}); }));
      check_call(tacho, cgroup.path(), call);
    }
  }
}

TEST_CASE("known waits fall into the buckets that hold them") {
  const Watched where;
  struct Waits {
    std::array<Moment, 7> moments;
  };
  const Shared<Waits> waits;
  Child child(where.directory(), [&](Line& parent) {
    const Watchable silent(false);
    int ms = 1;
    for (Moment& moment : waits->moments) {
      moment = timed([&] { must(poll_calls().front().wait(silent, ms) == 0, "timeout"); });
      ms *= 2;
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)child.hear();
  await_rest(shared(), child);
  const Page page = shared().page();
  const double early = only_sleeps(page) ? kLateSleep : 0;
  const auto buckets = page.buckets("tacho_poll_duration_seconds", {{"cgroup", where.path()}});
  // Each wait is at least its timeout and at most what the caller measured: one bucket in between must have counted it.
  double below = 0;
  std::size_t wait = 0;
  for (const auto& [bound, count] : buckets) {
    for (int i = 0; i < static_cast<int>(count); ++i, ++wait) {
      REQUIRE(wait < waits->moments.size());
      const double least = 1e-3 * (1U << wait) * (1 - early);
      CAPTURE(wait, bound, least);
      CHECK(bound >= least);
    }
    below = bound;
  }
  CHECK(wait == waits->moments.size());
  double longest = 0;
  for (const Moment& moment : waits->moments) {
    longest = std::max(longest, static_cast<double>(moment.latest - moment.earliest) * 1e-9);
  }
  CHECK(below <= longest * 1.25);
  child.tell();
  child.finish();
}
