#include <catch2/catch.hpp>
#include <string>

#include "targets/plan.h"
#include "worlds.h"

using tacho::config::Config;
using tacho::targets::World;
using namespace tacho::targets::test;

namespace {

/// nginx 10 with workers 11 and 12 that do not hold the socket themselves, unbound 20, a shell 30 that nginx started.
World machine() {
  World world = world_of({"/a"});
  add_process(world, 1, 0, "/sbin/init");
  add_process(world, 10, 1, "/usr/sbin/nginx");
  add_process(world, 11, 10, "/usr/sbin/nginx");
  add_process(world, 12, 10, "/usr/sbin/nginx");
  add_process(world, 20, 1, "/usr/sbin/unbound");
  add_process(world, 30, 10, "/bin/sh");
  listen(world, "/", 10, 80);
  listen(world, "/", 20, 53).kind = TACHO_LISTENER_UDP;
  return world;
}

}  // namespace

TEST_CASE("a process rule takes every process of that executable") {
  Config config;
  config.targets = {process_rule("web", "/usr/sbin/ng*", std::nullopt)};
  CHECK(plan(config, machine()) == Lines{"target=web | | 10 11 12 |"});
}

TEST_CASE("a process rule by port takes who listens there, and its children of the same executable") {
  Config config;
  config.targets = {process_rule("web", std::nullopt, 80)};
  CHECK(plan(config, machine()) == Lines{"target=web | | 10 11 12 |"});
}

TEST_CASE("a process has to match both executable and port") {
  Config config;
  config.targets = {process_rule("dns", "/usr/sbin/unbound", 53)};
  CHECK(plan(config, machine()) == Lines{"target=dns | | 20 |"});
  config.targets = {process_rule("dns", "/usr/sbin/unbound", 80)};
  CHECK(plan(config, machine()).empty());
}

TEST_CASE("a process that two rules name belongs to the first") {
  Config config;
  config.targets = {process_rule("dns", std::nullopt, 53), process_rule("all", "/usr/sbin/*", std::nullopt)};
  CHECK(plan(config, machine()) == Lines{"target=dns | | 20 |", "target=all | | 10 11 12 |"});
  std::swap(config.targets[0], config.targets[1]);
  CHECK(plan(config, machine()) == Lines{"target=all | | 10 11 12 20 |"});
}

TEST_CASE("a worker's worker belongs too, whatever the order of their numbers") {
  World world = machine();
  add_process(world, 5, 9, "/usr/sbin/nginx");
  add_process(world, 9, 10, "/usr/sbin/nginx");
  Config config;
  config.targets = {process_rule("web", std::nullopt, 80)};
  CHECK(plan(config, world) == Lines{"target=web | | 5 9 10 11 12 |"});
}

TEST_CASE("process rules of several kinds make targets in the order of the file, after those of cgroups") {
  Config config;
  config.targets = {process_rule("web", std::nullopt, 80), cgroup_rule("a", "/a"),
                    process_rule("dns", std::nullopt, 53)};
  CHECK(plan(config, machine()) == Lines{"target=a | /a | |", "target=web | | 10 11 12 |", "target=dns | | 20 |"});
}

TEST_CASE("ports and labels of a process rule are the target's") {
  Config config;
  config.targets = {process_rule("web", std::nullopt, 80)};
  config.targets.front().ports = {80};
  config.targets.front().labels = {{"team", "edge"}};
  CHECK(plan(config, machine()) == Lines{"target=web team=edge | | 10 11 12 | 80"});
}
