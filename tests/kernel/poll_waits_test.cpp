// Waits in progress and threads.

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "config/load.h"
#include "kernel/support/child.h"
#include "kernel/support/polls.h"
#include "kernel/support/running.h"
#include "kernel/support/span.h"

using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kThreads = 5;

/// The call that all architectures have.
int wait_on(const Watchable& what, int timeout_ms) {
  return poll_calls().front().wait(what, timeout_ms);
}

double completed(const Page& page, const std::string& cgroup) {
  return completed_polls(page, {{"cgroup", cgroup}});
}

/// Threads that wait until they are told, and end then.
Child waiters_in(const std::string& directory) {
  return Child(directory, [](Line& parent) {
    const Watchable gate(false);
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < kThreads; ++i) {
        threads.emplace_back([&gate] { must(wait_on(gate, -1) == 1, "gate"); });
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

TEST_CASE("threads that wait are seen while they do, and gone when they end") {
  const Watched where;
  Child child = waiters_in(where.directory());
  (void)child.hear();
  REQUIRE(shared().wait_for([&] { return where.value("tacho_poll_waiters") == kThreads; }));
  CHECK(where.value("tacho_threads") == kThreads);
  CHECK(completed(shared().page(), where.path()) == 0);
  child.tell();
  (void)child.hear();
  CHECK(shared().wait_for([&] { return where.value("tacho_threads") == 0; }));
  CHECK(where.value("tacho_poll_waiters") == 0);
  CHECK(completed(shared().page(), where.path()) == kThreads);
  child.tell();
  child.finish();
}

TEST_CASE("idle time grows while a wait lasts, by the time that passes") {
  const Watched where;
  Child child = waiters_in(where.directory());
  (void)child.hear();
  REQUIRE(shared().wait_for([&] { return where.value("tacho_poll_waiters") == kThreads; }));
  double first = 0;
  double second = 0;
  const Moment before = timed([&] { first = where.value("tacho_idle_seconds_total"); });
  REQUIRE(shared().wait_for([&] { return now_ns() > before.latest + 200'000'000; }));
  const Moment after = timed([&] { second = where.value("tacho_idle_seconds_total"); });
  const Span passed = between(before, after);
  CHECK(second - first >= passed.least * kThreads);
  CHECK(second - first <= passed.most * kThreads);
  child.tell();
  (void)child.hear();
  child.tell();
  child.finish();
}

TEST_CASE("a thread that is killed while it waits leaves no waiter behind") {
  const Watched where;
  Child child = waiters_in(where.directory());
  (void)child.hear();
  REQUIRE(shared().wait_for([&] { return where.value("tacho_poll_waiters") == kThreads; }));
  const double idle = where.value("tacho_idle_seconds_total");
  child.kill();
  CHECK(shared().wait_for([&] { return where.value("tacho_threads") == 0; }));
  CHECK(where.value("tacho_poll_waiters") == 0);
  CHECK(where.value("tacho_idle_seconds_total") >= idle);
}

TEST_CASE("waits that began before tacho are adopted, and count as what they turn out to be") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  const Labels target{{"cgroup", cgroup.path()}};
  Child child = waiters_in(cgroup.directory());
  (void)child.hear();
  // The shared tacho knows when they all wait: whoever comes later has not seen their beginning.
  REQUIRE(shared().wait_for(
      [&] { return shared().watches(target) && shared().page().value("tacho_poll_waiters", target) == kThreads; }));
  auto config = watching(cgroup.path());
  config.probes.socket.enabled = false;
  Running later(config);
  const Moment adopted = timed([] {});
  CHECK(later.page().value("tacho_poll_waiters") == kThreads);
  CHECK(later.page().value("tacho_threads") == kThreads);
  CHECK(later.page().value("tacho_idle_seconds_total") < 1);
  const Moment told = timed([&] { child.tell(); });
  (void)child.hear();
  CHECK(later.wait_for([&] { return later.page().value("tacho_threads") == 0; }));
  const Page page = later.page();
  // fexit does not see the end of calls that it was not there for; these threads make no other one.
  const bool blind = page.count("tacho_probe_attached", {{"hook", "poll"}, {"method", "fentry"}}) == 1;
  CHECK(completed_polls(page, {}) == (blind ? 0 : kThreads));
  CHECK((blind || completed_polls(page, {}, "_sum") >= between(adopted, told).least * kThreads));
  CHECK(page.value("tacho_poll_waiters") == 0);
  child.tell();
  child.finish();
}

TEST_CASE("a thread in another cgroup is nobody's, and one that comes in is counted from its next call") {
  const Watched where;
  Child child("", [directory = where.directory()](Line& parent) {
    const Watchable silent(false);
    must(wait_on(silent, 1) == 0, "outside");
    parent.tell();
    (void)parent.hear();
    move_to(directory, ::getpid());
    must(wait_on(silent, 1) == 0, "inside");
    parent.tell();
    (void)parent.hear();
  });
  (void)child.hear();
  CHECK(where.value("tacho_threads") == 0);
  child.tell();
  (void)child.hear();
  await_rest(shared(), child);
  CHECK(where.value("tacho_threads") == 1);
  CHECK(completed(shared().page(), where.path()) == 1);
  child.tell();
  child.finish();
}

TEST_CASE("a thread that leaves for an unwatched cgroup while it waits is not waiting here for ever") {
  const Watched where;
  const Cgroup outside("/" + playground().substr(1) + "-outside");
  Child child = waiters_in(where.directory());
  (void)child.hear();
  REQUIRE(shared().wait_for([&] { return where.value("tacho_poll_waiters") == kThreads; }));
  move_to(outside.directory(), child.pid());
  child.tell();
  (void)child.hear();
  CHECK(shared().wait_for([&] { return where.value("tacho_poll_waiters") == 0; }));
  CHECK(shared().wait_for([&] { return where.value("tacho_threads") == 0; }));
  child.tell();
  child.finish();
}

TEST_CASE("a wait that ended while nobody watched is none, and has no part in the next one") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  const std::filesystem::path file = std::filesystem::temp_directory_path() / (unique_name() + ".yaml");
  const auto write = [&](const std::string& path) {
    std::ofstream(file) << "targets: [{name: t, cgroup: \"" << path << "\"}]\nprobes: {socket: {enabled: false}}\n";
  };
  write(cgroup.path() + "*");
  Running tacho(tacho::config::load_file(file).config, file);
  const Labels target{{"target", "t"}};
  const auto watch = [&](bool watched) {
    write(watched ? cgroup.path() + "*" : "/nobody*");
    REQUIRE(tacho.app().reload());
    REQUIRE(tacho.wait_for([&] { return tacho.watches({{"cgroup", cgroup.path()}}) == watched; }));
  };
  Child child(cgroup.directory(), [](Line& parent) {
    const Watchable first(false);
    const Watchable second(false);
    std::binary_semaphore goes_on(0);
    std::binary_semaphore ended(0);
    const std::jthread waiter([&] {
      must(wait_on(first, -1) == 1, "first");
      ended.release();
      goes_on.acquire();
      must(wait_on(second, -1) == 1, "second");
      ended.release();
    });
    (void)parent.hear();
    first.make_readable();
    ended.acquire();
    parent.tell();
    (void)parent.hear();
    goes_on.release();
    (void)parent.hear();
    second.make_readable();
    ended.acquire();
    parent.tell();
    (void)parent.hear();
  });
  const auto waiters = [&] { return tacho.page().value("tacho_poll_waiters", target); };
  REQUIRE(tacho.wait_for([&] { return waiters() == 1; }));
  watch(false);
  child.tell();
  (void)child.hear();
  watch(true);
  CHECK(tacho.wait_for([&] { return waiters() == 0; }));
  const Moment wait = timed([&] {
    child.tell();
    CHECK(tacho.wait_for([&] { return waiters() == 1; }));
    child.tell();
    (void)child.hear();
  });
  await_rest(tacho, child);
  const Page page = tacho.page();
  CHECK(completed_polls(page, target) == 1);
  CHECK(completed_polls(page, target, "_sum") <= between(wait, wait).most);
  CHECK(page.value("tacho_poll_waiters", target) == 0);
  child.tell();
  child.finish();
  std::filesystem::remove(file);
}
