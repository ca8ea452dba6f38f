#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "targets/plan.h"
#include "worlds.h"

using tacho::config::Config;
using tacho::config::ContainerLabels;
using tacho::config::Listeners;
using tacho::targets::Earlier;
using tacho::targets::TargetRules;
using tacho::targets::World;
using namespace tacho::targets::test;

namespace {

const std::string kId(64, 'c');
const std::string kInnerId(64, 'd');

}  // namespace

TEST_CASE("a container in which somebody listens is a target, with everything inside it") {
  World world = world_of({"/docker", "/docker/" + kId, "/docker/" + kId + "/workers", "/docker/" + kInnerId});
  listen(world, "/docker/" + kId + "/workers", 10, 80);
  CHECK(plan({}, world) == Lines{"target=cccccccccccc | /docker/" + kId + " /docker/" + kId + "/workers | |"});
  CHECK(TargetRules::compile({})->plan(world, {})[0].identity.runtime == "docker");
}

TEST_CASE("a unit in which somebody listens is a target, once for all its listeners") {
  World world = world_of({"/system.slice", "/system.slice/nginx.service", "/system.slice/nginx.service/x"});
  listen(world, "/system.slice/nginx.service", 10, 80);
  listen(world, "/system.slice/nginx.service/x", 11, 81);
  CHECK(plan({}, world) ==
        Lines{"target=nginx.service | /system.slice/nginx.service /system.slice/nginx.service/x | |"});
}

TEST_CASE("a cgroup that nobody knows is called by its path, and its neighbours stay outside") {
  World world = world_of({"/a", "/a-b", "/a/b", "/ab"});
  listen(world, "/a", 10, 80);
  CHECK(plan({}, world) == Lines{"target=/a | /a /a/b | |"});
}

TEST_CASE("a container inside a container is its own target, and neither has the other's cgroups") {
  const std::string outer = "/docker/" + kId;
  const std::string inner = outer + "/docker/" + kInnerId;
  World world = world_of({"/docker", outer, outer + "/docker", inner, inner + "/x", outer + "/system.slice"});
  listen(world, inner, 10, 80);
  SECTION("the outer one serves nothing itself") {
    CHECK(plan({}, world) == Lines{"target=dddddddddddd | " + inner + " " + inner + "/x | |"});
  }
  SECTION("the outer one serves too") {
    listen(world, outer + "/system.slice", 11, 81);
    CHECK(plan({}, world) ==
          Lines{"target=cccccccccccc | " + outer + " " + outer + "/docker " + outer + "/system.slice | |",
                "target=dddddddddddd | " + inner + " " + inner + "/x | |"});
  }
}

TEST_CASE("who listens in a session or in the root is told apart by process") {
  World world = world_of({"/user.slice", "/user.slice/session-1.scope"});
  add_process(world, 10, 1, "/usr/bin/redis-server");
  add_process(world, 20, 1, "/usr/bin/python3");
  listen(world, "/user.slice/session-1.scope", 10, 6379);
  listen(world, "/", 20, 8000);
  CHECK(plan({}, world) == Lines{"target=redis-server:6379 | | 10 |", "target=python3:8000 | | 20 |"});
}

TEST_CASE("a listener in a cgroup that cannot be seen is told apart by process") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/bin/redis-server");
  listen(world, "/elsewhere", 10, 6379);
  CHECK(plan({}, world) == Lines{"target=redis-server:6379 | | 10 |"});
}

TEST_CASE("nobody is discovered under the name of what is beyond the limit") {
  const std::string container = "/docker/" + kId;
  World world = world_of({container});
  add_process(world, 10, 1, "/tmp/other");
  listen(world, "/", 10, 40'000).port_free = 1;
  listen(world, container, 11, 80);
  world.names[container] = {"", "", "other"};
  Config config;
  config.labels.drop = {ContainerLabels::Label::container};
  const Lines found = plan(config, world);
  CHECK(found == Lines{"target=cccccccccccc | " + container + " | |", "target=other@4026531840 | | 10 |"});
  Earlier earlier;
  earlier.processes[10] = "other@4026531840";
  CHECK(plan(config, world, earlier) == found);
}

TEST_CASE("a process that is called like a configured target is another one, by a label that is not empty") {
  World world = world_of({"/a"});
  add_process(world, 10, 1, "/tmp/web");
  listen(world, "/", 10, 40'000).port_free = 1;
  Config config;
  config.discovery.listeners = Listeners::always;
  config.targets = {cgroup_rule("web", "/a")};
  const Lines found = plan(config, world);
  CHECK(found == Lines{"target=web | /a | |", "target=web@4026531840 | | 10 |"});
  Earlier earlier;
  earlier.processes[10] = "web@4026531840";
  CHECK(plan(config, world, earlier) == found);
}

TEST_CASE("tacho does not discover itself") {
  World world = world_of({"/a"});
  world.own_tgid = 10;
  constexpr std::uint64_t kSocket = 7;
  listen(world, "/a", 10, 9435, kSocket);
  listen(world, "/", 10, 9436);
  listen(world, "/a", 12, 9435, kSocket);  // the process that serves has its sockets
  CHECK(plan({}, world).empty());
  add_process(world, 13, 10, "/usr/bin/tacho");
  listen(world, "/", 13, 9437);
  CHECK(plan({}, world) == Lines{"target=tacho:9437 | | 13 |"});
}

TEST_CASE("discovery goes on beside configured targets only when told so") {
  World world = world_of({"/a", "/b"});
  listen(world, "/a", 10, 80);
  listen(world, "/b", 11, 81);
  Config config;
  config.discovery.listeners = Listeners::never;
  CHECK(plan(config, world).empty());
  config.targets = {cgroup_rule("web", "/a")};
  config.discovery.listeners = Listeners::automatic;
  CHECK(plan(config, world) == Lines{"target=web | /a | |"});
  config.discovery.listeners = Listeners::always;
  CHECK(plan(config, world) == Lines{"target=web | /a | |", "target=/b | /b | |"});
}

TEST_CASE("a configured process is not discovered a second time") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/bin/redis-server");
  listen(world, "/", 10, 6379);
  Config config;
  config.discovery.listeners = Listeners::always;
  config.targets = {process_rule("cache", "/usr/bin/redis-server", std::nullopt)};
  CHECK(plan(config, world) == Lines{"target=cache | | 10 |"});
}

TEST_CASE("what is excluded is not discovered, nor what is below it") {
  World world = world_of(
      {"/system.slice", "/system.slice/ssh.service", "/system.slice/ssh.service/x", "/system.slice/web.service"});
  listen(world, "/system.slice/ssh.service/x", 10, 22);
  listen(world, "/system.slice/web.service", 11, 80);
  listen(world, "/", 12, 81);
  add_process(world, 12, 1, "/usr/bin/x");
  Config config;
  config.discovery.exclude = {"/system.slice/ssh.service"};
  CHECK(plan(config, world) == Lines{"target=web.service | /system.slice/web.service | |", "target=x:81 | | 12 |"});
  config.discovery.exclude = {"/system.slice/*"};
  CHECK(plan(config, world) == Lines{"target=x:81 | | 12 |"});
  config.discovery.exclude = {"/"};
  CHECK(plan(config, world).empty());
}

TEST_CASE("a configured cgroup keeps what is configured when a discovered one surrounds it") {
  World world = world_of({"/a", "/a/b"});
  listen(world, "/a", 10, 80);
  listen(world, "/a/b", 11, 81);
  Config config;
  config.discovery.listeners = Listeners::always;
  config.targets = {cgroup_rule("inner", "/a/b")};
  CHECK(plan(config, world) == Lines{"target=inner | /a/b | |", "target=/a | /a | |"});
}

TEST_CASE("sockets that are no server's make no target") {
  World world = world_of({"/a"});
  listen(world, "/a", 10, 40'000).kind = TACHO_LISTENER_UDP;
  CHECK(plan({}, world).empty());
  world.listeners.front().port = 53;
  CHECK(plan({}, world) == Lines{"target=/a | /a | |"});
}

TEST_CASE("a discovered process keeps its name while it lives") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/bin/redis-server");
  listen(world, "/", 10, 6380);
  CHECK(plan({}, world, {.processes = {{10, "redis-server:6379"}}}) == Lines{"target=redis-server:6379 | | 10 |"});
}

TEST_CASE("a process that has closed its listening socket stays what it was while it lives") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/bin/redis-server");
  add_process(world, 11, 10, "/usr/bin/redis-server");
  const Earlier earlier{.processes = {{10, "redis-server:6379"}, {11, "redis-server:6379"}, {12, "redis-server:6379"}}};
  CHECK(plan({}, world, earlier) == Lines{"target=redis-server:6379 | | 10 11 |"});
  SECTION("its successor on the same port belongs to it") {
    add_process(world, 20, 1, "/usr/bin/redis-server");
    listen(world, "/", 20, 6379);
    CHECK(plan({}, world, earlier) == Lines{"target=redis-server:6379 | | 10 11 20 |"});
  }
  SECTION("a rule by port keeps it, too") {
    Config config;
    config.targets = {process_rule("cache", std::nullopt, 6379)};
    CHECK(plan(config, world, earlier).empty());
    CHECK(plan(config, world, {.processes = {{10, "cache"}}}) == Lines{"target=cache | | 10 11 |"});
  }
  SECTION("a rule that another process matched by its executable does not") {
    Config config;
    config.targets = {process_rule("other", "/usr/bin/other", std::nullopt)};
    CHECK(plan(config, world, {.processes = {{10, "other"}}}).empty());
  }
}

TEST_CASE("a cgroup in which nobody listens any more stays a target while somebody is in it") {
  const std::string unit = "/system.slice/nginx.service";
  World world =
      world_of({"/docker", "/docker/" + kId, "/system.slice", unit, unit + "/x", "/system.slice/other.service"});
  Earlier earlier{.cgroups = {unit, "/docker/" + kId, "/system.slice/gone.service"}};
  earlier.inhabited = [&unit](const std::string& path) { return path == unit; };
  const auto planned = TargetRules::compile({})->plan(world, earlier);
  CHECK(brief(planned, world) == Lines{"target=nginx.service | " + unit + " " + unit + "/x | |"});
  CHECK(planned.front().drains);
  CHECK(planned.front().discovered);
  SECTION("who listens is not asked whether anybody is there") {
    listen(world, unit + "/x", 10, 80);
    earlier.inhabited = [](const std::string& path) { return path == "/docker/" + kId; };
    const auto both = TargetRules::compile({})->plan(world, earlier);
    REQUIRE(both.size() == 2);
    CHECK(both[0].name == std::string(12, 'c'));
    CHECK(both[0].drains);
    CHECK_FALSE(both[1].drains);
  }
  SECTION("what is excluded meanwhile, or taken by a rule, is not kept") {
    Config config;
    config.discovery.exclude = {"/system.slice"};
    CHECK(plan(config, world, earlier).empty());
    config.discovery.exclude = {};
    config.discovery.listeners = Listeners::always;
    config.targets = {cgroup_rule("web", unit)};
    CHECK(plan(config, world, earlier) == Lines{"target=web | " + unit + " " + unit + "/x | |"});
  }
}

TEST_CASE("every cgroup and process belongs to at most one target, however they nest") {
  const std::string outer = "/docker/" + kId;
  World world = world_of({"/docker", outer, outer + "/docker", outer + "/docker/" + kInnerId, "/a", "/a/b",
                          "/a/b/c.service", "/a/b/c.service/d"});
  std::uint32_t tgid = 10;
  for (const auto& [path, id] : world.cgroups) {
    add_process(world, tgid, 1, "/bin/x");
    listen(world, path, tgid, static_cast<std::uint16_t>(tgid));
    ++tgid;
  }
  Config config;
  config.discovery.listeners = Listeners::always;
  config.targets = {cgroup_rule("b", "/a/b"), process_rule("x", "/bin/x", std::nullopt)};
  for (const bool configured : {true, false}) {
    CAPTURE(configured);
    std::set<std::uint64_t> cgroups;
    std::set<std::uint32_t> processes;
    for (const auto& target : TargetRules::compile(configured ? config : Config{})->plan(world, {})) {
      for (const auto id : target.cgroups) {
        CAPTURE(target.name, id);
        CHECK(cgroups.insert(id).second);
      }
      for (const auto process : target.processes) {
        CAPTURE(target.name, process);
        CHECK(processes.insert(process).second);
      }
    }
    CHECK(cgroups.size() + processes.size() > 4);
  }
}

TEST_CASE("what is discovered has a rank, and what a user may make has the user") {
  using tacho::targets::Rank;
  const std::string users = "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service";
  World world = world_of({"/docker/" + kId, "/system.slice/nginx.service", users, "/made-by-hand"});
  listen(world, "/docker/" + kId, 10, 80);
  listen(world, "/system.slice/nginx.service", 11, 80);
  listen(world, users, 12, 80);
  listen(world, "/made-by-hand", 13, 80);
  for (const std::uint32_t tgid : {20U, 21U}) {
    listen(world, "/", tgid, static_cast<std::uint16_t>(8000 + tgid));
    add_process(world, tgid, 1, "/usr/bin/x");
  }
  world.processes[21].user = 65534;
  Lines ranks;
  for (const auto& target : TargetRules::compile({})->plan(world, {})) {
    ranks.push_back(target.name + " " + std::to_string(static_cast<int>(target.rank)) + " " + target.owner);
  }
  CHECK(ranks == Lines{"cccccccccccc 1 ", "/made-by-hand 2 ", "nginx.service 2 ", "user@1000/web.service 3 1000",
                       "x:8020 3 ", "x:8021 3 65534"});
}

TEST_CASE("cgroups whose names are no text are different targets with different names") {
  World world = world_of({"/a\xff", "/a\xfe", "/a\\xff"});
  listen(world, "/a\xff", 10, 80);
  listen(world, "/a\xfe", 11, 80);
  listen(world, "/a\\xff", 12, 80);
  std::set<std::string> labels;
  for (const auto& target : TargetRules::compile({})->plan(world, {})) {
    std::string text;
    for (const auto& [name, value] : target.labels) {
      text += name + "=" + value + " ";
    }
    CHECK(text.find('\xff') == std::string::npos);
    CHECK(labels.insert(text).second);
  }
  CHECK(labels.size() == 3);
}
