// What tacho's programs cost a target, as it is exported, against what the kernel measures of all their runs.

#include <catch2/catch.hpp>

#include "kernel/support/cgroup.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"

using namespace tacho::kernel_test;

namespace {

constexpr const char* kOwn = "tacho_overhead_seconds_total";
constexpr int kRequests = 60'000;

}  // namespace

TEST_CASE("the time of tacho's own programs is charged to the target whose events they are for") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  const Cgroup idle(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.targets.push_back(config.targets.front());
  config.targets.back().name = "idle";
  config.targets.back().cgroup = idle.path();
  config.run_statistics = true;
  Running tacho(config);
  Server server(cgroup.directory());
  server.ask(kRequests);
  server.finish();
  const Labels target{{"target", "t"}};
  const auto requests = [&] { return tacho.page().value("tacho_requests_total", target); };
  REQUIRE(tacho.wait_for([&] { return requests() == kRequests; }));
  // It is of the last sample.
  const auto samples = [&] { return tacho.app().scraper().view([](const tacho::scrape::State& s) { return s.tick; }); };
  REQUIRE(tacho.wait_for([&, first = samples()] { return samples() > first; }));
  const Page page = tacho.page();
  for (const char* probe : {"socket", "sched"}) {
    CAPTURE(probe);
    const double own = page.value(kOwn, {{"target", "t"}, {"probe", probe}});
    // Of these runs some are for the client and for all other tasks, and all include the way to the target.
    const double all = page.sum("tacho_probe_run_seconds_total", {{"probe", probe}});
    CAPTURE(own, all);
    CHECK(own > 0.1 * all);
    CHECK(own < all);
    CHECK(page.value(kOwn, {{"target", "idle"}, {"probe", probe}}) == 0);
  }
}
