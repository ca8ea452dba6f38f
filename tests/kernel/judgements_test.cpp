// What is said about a target beside its counters: saturation, its error, conditions.
#include <catch2/catch.hpp>
#include <fstream>

#include "kernel/support/cgroup.h"
#include "kernel/support/page.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"

using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;

/// A tacho that watches one cgroup, in which a server has answered some requests, with a probe or two switched off.
Page page_without(bool sockets, bool polls, bool threads) {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.socket.enabled = sockets;
  config.probes.poll.enabled = polls;
  config.probes.sched.enabled = threads;
  Running tacho(config);
  Server server(cgroup.directory());
  server.ask(kRequests);
  server.finish();
  const Labels lost{{"condition", "lost_events"}};
  REQUIRE(tacho.wait_for([&] { return tacho.page().count("tacho_target_condition", lost) == 1; }));
  // Two samples, of which the first is that of the beginning.
  tacho.wait_for([&] { return tacho.page().count("tacho_saturation_ratio") == 1; }, std::chrono::milliseconds(2'500));
  return tacho.page();
}

std::size_t told(const Page& page, const std::string& condition) {
  return page.count("tacho_target_condition", {{"condition", condition}});
}

}  // namespace

TEST_CASE("an idle target has a saturation, which is small, and a standard error") {
  const Watched where;
  const Labels labels{{"cgroup", where.path()}};
  REQUIRE(shared().wait_for([&] {
    const Page page = shared().page();
    return page.count("tacho_saturation_ratio_error", labels) == 1 &&
           page.value("tacho_saturation_ratio_error", labels) < 0.2;
  }));
  const Page page = shared().page();
  CHECK(page.value("tacho_saturation_ratio", labels) == 0);
  CHECK(page.value("tacho_saturation_ratio_error", labels) > 0.02);
}

TEST_CASE("without the poll probe nothing is said about polls, and saturation is there") {
  const Page page = page_without(true, false, true);
  CHECK(told(page, "no_poll") == 0);
  CHECK(told(page, "busy_polling") == 0);
  CHECK(told(page, "few_samples") == 1);
  CHECK(told(page, "multiplexed") == 1);
  CHECK(page.count("tacho_saturation_ratio") == 1);
}

TEST_CASE("without the socket probe nothing is said about requests, and saturation is that of the CPUs") {
  const Page page = page_without(false, true, true);
  CHECK(told(page, "no_poll") == 0);
  CHECK(told(page, "few_samples") == 0);
  CHECK(told(page, "multiplexed") == 0);
  CHECK(told(page, "busy_polling") == 1);
  CHECK(page.count("tacho_saturation_ratio") == 1);
}

TEST_CASE("with neither sockets nor threads seen there is no saturation, not one of 0") {
  const Page page = page_without(false, true, false);
  CHECK(page.count("tacho_saturation_ratio") == 0);
  CHECK(page.count("tacho_saturation_ratio_error") == 0);
}

TEST_CASE("a frozen cgroup is told, until it is thawed (N9)") {
  const Watched where;
  Server server(where.directory());
  const auto frozen = [&where](double state) {
    return shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "frozen"}}) == state; });
  };
  const auto freeze = [&where](int state) { std::ofstream(where.directory() + "/cgroup.freeze") << state; };
  CHECK(frozen(0));
  freeze(1);
  CHECK(frozen(1));
  freeze(0);
  CHECK(frozen(0));
  server.ask(kRequests);
  server.finish();
}
