// Servers that nobody configured.

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <list>
#include <string>

#include "bpf/lib/targets.h"
#include "kernel/map.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "scrape/views.h"

using tacho::config::Config;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kRequests = 23;
constexpr int kDrained = 300;

Config discovering() {
  Config config;
  config.probes.poll.enabled = false;
  config.limits.max_targets = 1000;  // others may run servers on this machine
  return config;
}

double requests(Running& tacho, const std::string& target) {
  return tacho.page().value("tacho_requests_total", {{"target", target}});
}

}  // namespace

TEST_CASE("a server in a cgroup is discovered as that cgroup, older and newer than tacho") {
  const Cgroup old_cgroup(playground() + "/" + unique_name());
  const Cgroup new_cgroup(playground() + "/" + unique_name());
  Server old_server(old_cgroup.directory());
  Running tacho(discovering());
  CHECK(tacho.watches({{"target", old_cgroup.path()}}));
  CHECK_FALSE(tacho.watches({{"target", new_cgroup.path()}}));
  old_server.ask(kRequests);
  CHECK(requests(tacho, old_cgroup.path()) == kRequests);
  Server new_server(new_cgroup.directory());
  CHECK(tacho.wait_for([&] { return tacho.watches({{"target", new_cgroup.path()}}); }, 2s));
  new_server.ask(7);
  CHECK(requests(tacho, new_cgroup.path()) == 7);
  new_server.finish();
  CHECK(tacho.wait_for([&] { return !tacho.watches({{"target", new_cgroup.path()}}); }));
  CHECK(tacho.watches({{"target", old_cgroup.path()}}));
  old_server.finish();
}

TEST_CASE("a server in the root cgroup is discovered by its program and port") {
  const std::uint16_t port = port_of(listen_tcp());  // free a moment ago
  Server server(Cgroup::mount(), port);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename();
  const std::string name = program + ":" + std::to_string(port);
  Running tacho(discovering());
  REQUIRE(tacho.watches({{"target", name}}));
  server.ask(kRequests);
  CHECK(requests(tacho, name) == kRequests);
  server.finish();
  CHECK(tacho.wait_for([&] { return !tacho.watches({{"target", name}}); }));
}

TEST_CASE("a server that closes its listening socket is counted until its last reply") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  const bool in_cgroup = GENERATE(true, false);
  CAPTURE(in_cgroup);
  // Free a moment ago. Where the kernel chooses it, the program has one name with all that listens so at the same time.
  const std::uint16_t port = port_of(listen_tcp());
  Child server(in_cgroup ? cgroup.directory() : Cgroup::mount(), [port](Line& parent) {
    tacho::UniqueFd listener = listen_tcp(port);
    parent.tell();
    const tacho::UniqueFd connection = accept_from(listener);
    serve(connection, kRequests, Server::kRequest, Server::kReply);
    (void)parent.hear();
    listener.reset();
    parent.tell();
    serve(connection, kDrained, Server::kRequest, Server::kReply);
    parent.tell();
    (void)parent.hear();
  });
  (void)server.hear();
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename();
  const std::string name = in_cgroup ? cgroup.path() : program + ":" + std::to_string(port);
  Running tacho(discovering());
  REQUIRE(tacho.watches({{"target", name}}));
  const tacho::UniqueFd client = connect_tcp(port);
  ask(client, kRequests, Server::kRequest, Server::kReply);
  server.tell();
  (void)server.hear();
  // Over several plans: each that is made for another reason is one more occasion to forget the server.
  for (int asked = 0; asked < kDrained; asked += 30) {
    const Cgroup another(playground() + "/" + unique_name());
    CHECK_FALSE(tacho.wait_for([] { return false; }, 200ms));
    ask(client, 30, Server::kRequest, Server::kReply);
  }
  (void)server.hear();
  CHECK(requests(tacho, name) == kRequests + kDrained);
  CHECK(tacho.page().value("tacho_requests_unanswered_total", {{"target", name}}) == 0);
  CHECK(tacho.watches({{"target", name}}));
  server.tell();
  server.finish();
  CHECK(tacho.wait_for([&] { return !tacho.watches({{"target", name}}); }));
}

TEST_CASE("a port that the kernel chose is not in the name of who listens on it") {
  Server server(Cgroup::mount());
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename();
  Running tacho(discovering());
  REQUIRE(tacho.watches({{"target", program}}));
  server.ask(kRequests);
  CHECK(requests(tacho, program) == kRequests);
  server.finish();
}

TEST_CASE("tacho does not discover the process it runs in") {
  const tacho::UniqueFd listener = listen_tcp();
  Running tacho(discovering());
  const auto targets = tacho.app().scraper().view(tacho::scrape::summaries);
  const std::string port = ":" + std::to_string(port_of(listener));
  CHECK(std::ranges::none_of(targets, [&port](const auto& target) { return target.name.ends_with(port); }));
}

TEST_CASE("discovery is off when something is configured, and what is excluded stays out") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Server server(cgroup.directory());
  {
    Config config = discovering();
    config.targets = watching("/nonexistent").targets;
    Running tacho(config);
    CHECK_FALSE(tacho.watches({{"target", cgroup.path()}}));
  }
  {
    Config config = discovering();
    config.discovery.exclude = {playground()};
    Running tacho(config);
    CHECK_FALSE(tacho.watches({{"target", cgroup.path()}}));
  }
  server.finish();
}

TEST_CASE("news of a thousand and a half of cgroups wait until tacho has time for them") {
  constexpr int kCgroups = 1500;
  const Labels unheard{{"probe", "targets"}, {"reason", "ring_full"}};
  Running tacho(discovering());
  const double before = tacho.page().value("tacho_lost_events_total", unheard);
  std::list<Cgroup> cgroups;
  for (int i = 0; i < kCgroups; ++i) {
    cgroups.emplace_back(playground() + "/" + unique_name());
  }
  tacho.app().run(std::chrono::steady_clock::now());
  CHECK(tacho.page().value("tacho_lost_events_total", unheard) == before);
  // Their ends are as many; others hear of them, too.
  while (!cgroups.empty()) {
    cgroups.pop_back();
    if (cgroups.size() % 100 == 0) {
      CHECK(tacho.wait_for([] { return true; }));
      CHECK(shared().wait_for([] { return true; }));
    }
  }
}

TEST_CASE("a member that finds no room in the kernel's maps is counted, once") {
  const std::string path = playground() + "/" + unique_name();
  Running tacho(watching(path));
  const auto objects = tacho.app().objects();
  const auto targets = std::ranges::find(objects, "targets", [](const auto* object) { return object->name(); });
  REQUIRE(targets != objects.end());
  const auto map = tacho::kernel::Map<std::uint64_t, target_ref>::open(**targets, "cgroup_targets");
  REQUIRE(map);
  constexpr std::uint64_t kNobody = std::uint64_t{1} << 62;  // ids that no cgroup has
  std::uint64_t id = kNobody;
  // A look at everything that began before takes away who has no cgroup.
  const auto fill = [&] {
    while (map->put(id, {})) {
      ++id;
    }
  };
  fill();
  CHECK(id - kNobody > 1000);
  CHECK(tacho.page().value("tacho_target_members_refused_total") == 0);
  const Cgroup cgroup(path);
  CHECK(tacho.wait_for([&] { return tacho.page().value("tacho_target_members_refused_total") > 0; }));
  // It is asked for again with every plan.
  fill();
  const Cgroup other(path + "/other");
  tacho.wait_for([&] { return tacho.page().value("tacho_target_members_refused_total") > 1; });
  CHECK(tacho.page().value("tacho_target_members_refused_total") == 2);
}
