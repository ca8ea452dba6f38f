#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "targets/plan.h"
#include "worlds.h"

using tacho::config::Config;
using tacho::targets::TargetRules;
using tacho::targets::World;
using namespace tacho::targets::test;

TEST_CASE("a cgroup that a rule names becomes a target with everything below it") {
  Config config;
  config.targets = {cgroup_rule("web", "/system.slice/nginx.service")};
  config.targets.front().ports = {80, 443};
  config.targets.front().labels = {{"team", "payments"}};
  const World world = world_of({"/system.slice", "/system.slice/nginx.service", "/system.slice/nginx.service/a/b",
                                "/system.slice/nginx.service/a", "/system.slice/nginx.service2"});
  CHECK(plan(config, world) == Lines{"target=web team=payments | /system.slice/nginx.service "
                                     "/system.slice/nginx.service/a/b /system.slice/nginx.service/a | | 80 443"});
  const auto planned = TargetRules::compile(config)->plan(world, {});
  REQUIRE(planned.size() == 1);
  CHECK(planned[0].name == "web");
  CHECK(planned[0].identity.unit == "nginx.service");
  CHECK(planned[0].identity.path == "/system.slice/nginx.service");
}

TEST_CASE("a glob that matches several cgroups makes one target each, told apart by the path") {
  Config config;
  config.targets = {cgroup_rule("worker", "/jobs/*")};
  const World world = world_of({"/jobs", "/jobs/a", "/jobs/a/x", "/jobs/b", "/other/c"});
  CHECK(plan(config, world) ==
        Lines{"target=worker cgroup=/jobs/a | /jobs/a /jobs/a/x | |", "target=worker cgroup=/jobs/b | /jobs/b | |"});
}

TEST_CASE("a glob that could match several carries the path even while it matches one") {
  Config config;
  config.targets = {cgroup_rule("worker", "/jobs/*")};
  CHECK(plan(config, world_of({"/jobs", "/jobs/a"})) == Lines{"target=worker cgroup=/jobs/a | /jobs/a | |"});
}

TEST_CASE("below a match the same rule makes no further targets") {
  Config config;
  config.targets = {cgroup_rule("all", "/a/**")};
  const World world = world_of({"/a", "/a/b", "/a/b/c", "/a/d"});
  CHECK(plan(config, world) == Lines{"target=all cgroup=/a/b | /a/b /a/b/c | |", "target=all cgroup=/a/d | /a/d | |"});
}

TEST_CASE("a cgroup inside another rule's cgroup belongs to its own rule") {
  Config config;
  config.targets = {cgroup_rule("outer", "/a"), cgroup_rule("inner", "/a/b")};
  const World world = world_of({"/a", "/a/b", "/a/b/c", "/a/d"});
  const Lines expected{"target=outer | /a /a/d | |", "target=inner | /a/b /a/b/c | |"};
  CHECK(plan(config, world) == expected);
  std::swap(config.targets[0], config.targets[1]);
  CHECK(plan(config, world) == expected);
}

TEST_CASE("where two rules name the same cgroup the first one wins") {
  Config config;
  config.targets = {cgroup_rule("first", "/a"), cgroup_rule("second", "/*")};
  CHECK(plan(config, world_of({"/a", "/b"})) == Lines{"target=first | /a | |", "target=second cgroup=/b | /b | |"});
  std::swap(config.targets[0], config.targets[1]);
  CHECK(plan(config, world_of({"/a", "/b"})) ==
        Lines{"target=second cgroup=/a | /a | |", "target=second cgroup=/b | /b | |"});
}

TEST_CASE("a glob means what is below the root, not the root itself") {
  Config config;
  for (const char* glob : {"/*", "/**", "/**/"}) {
    CAPTURE(glob);
    config.targets = {cgroup_rule("all", glob)};
    for (const std::string& line : plan(config, world_of({"/a", "/b"}))) {
      CHECK(line.find(" / ") == std::string::npos);
    }
  }
}

TEST_CASE("the root can be a target when it is named") {
  Config config;
  config.targets = {cgroup_rule("machine", "/")};
  CHECK(plan(config, world_of({"/a", "/a/b"})) == Lines{"target=machine | / /a /a/b | |"});
}

TEST_CASE("a rule that matches nothing yet is absent, and so is a rule by container as long as there are no names") {
  Config config;
  config.targets = {cgroup_rule("there", "/a"), cgroup_rule("nowhere", "/z")};
  const auto rules = TargetRules::compile(config);
  const World world = world_of({"/a"});
  CHECK(rules->absent(rules->plan(world, {})) == Lines{"nowhere"});
  CHECK(rules->absent({}) == Lines{"there", "nowhere"});
}

TEST_CASE("a bad glob is an error that names the entry") {
  Config config;
  config.targets = {cgroup_rule("web", "/a[")};
  const auto rules = TargetRules::compile(config);
  REQUIRE_FALSE(rules);
  CHECK(rules.error().message.starts_with("target web: "));
  Config exe;
  exe.targets = {process_rule("dns", "[", std::nullopt)};
  CHECK(TargetRules::compile(exe).error().message.starts_with("target dns: "));
  Config exclude;
  exclude.discovery.exclude = {"["};
  CHECK(TargetRules::compile(exclude).error().message.starts_with("discovery.exclude: "));
}

TEST_CASE("what a configuration needs to know of the machine") {
  const auto needs = [](const Config& config) {
    const auto rules = TargetRules::compile(config);
    return std::string(rules->needs_listeners() ? "l" : "-") + (rules->needs_executions() ? "x" : "-");
  };
  Config nothing;
  CHECK(needs(nothing) == "l-");
  nothing.discovery.listeners = tacho::config::Listeners::never;
  CHECK(needs(nothing) == "--");
  Config cgroups;
  cgroups.targets = {cgroup_rule("web", "/a")};
  CHECK(needs(cgroups) == "--");
  cgroups.discovery.listeners = tacho::config::Listeners::always;
  CHECK(needs(cgroups) == "l-");
  Config port;
  port.targets = {process_rule("dns", std::nullopt, 53)};
  CHECK(needs(port) == "l-");
  Config exe;
  exe.targets = {process_rule("dns", "/usr/sbin/unbound", std::nullopt)};
  CHECK(needs(exe) == "lx");
}
