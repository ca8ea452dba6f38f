#include "targets/connection_units.h"

#include <catch2/catch.hpp>
#include <string>

#include "worlds.h"

using tacho::config::Config;
using tacho::config::Listeners;
using tacho::targets::Earlier;
using tacho::targets::identify_template;
using tacho::targets::is_template;
using tacho::targets::service_of_connections;
using tacho::targets::TargetRules;
using tacho::targets::World;
using namespace tacho::targets::test;

namespace {

const std::string kSlice = "/system.slice/system-echo.slice";

/// "echo@.service of /path"; empty where the instance is of no connection.
std::string told(const std::string& path) {
  const auto service = service_of_connections(path);
  return service ? service->unit + " of " + service->path : "";
}

std::string instance(const std::string& name) {
  return kSlice + "/echo@" + name + ".service";
}

}  // namespace

TEST_CASE("what systemd starts for a connection is told by its name, of whatever family") {
  for (const std::string name :
       {"0-127.0.0.1:8080-127.0.0.1:51234", "17-10.0.0.1:80-10.0.0.9:4711", "3-::1:8080-::1:40000",
        "3-fd00:3::1:80-fd00:3::9:4711", "12-9081-10.0.0.1:80-10.0.0.9:4711", "5-4711-1000", "5-4711-0", "2-unknown",
        "5-3307-4711-1000"}) {
    CAPTURE(name);
    CHECK(told(instance(name)) == "echo@.service of " + kSlice);
  }
}

TEST_CASE("instances that somebody has named are none") {
  for (const std::string name :
       {"main", "1", "1-2", "2024-01-02", "2024-10-12", "x-127.0.0.1:80-127.0.0.1:9", "-127.0.0.1:80-127.0.0.1:9",
        "0-127.0.0.1:8080", "0-127.0.0.1:80-localhost:9", "", "01-4711-1000", "a-unknown", "0-known"}) {
    CAPTURE(name);
    CHECK(told(instance(name)).empty());
  }
  CHECK(told("/system.slice/echo.service").empty());
  CHECK(told("/system.slice/system-echo.slice/@0-unknown.service").empty());
  CHECK(told("/system.slice/system-echo.slice/echo@0-unknown.scope").empty());
  CHECK(told("/").empty());
  CHECK(told("echo@0-unknown.service").empty());
}

TEST_CASE("a slice that others share stands for no template, nor does systemd's own") {
  const std::string name = "echo@0-127.0.0.1:80-127.0.0.1:9.service";
  CHECK(told("/system.slice/" + name).empty());
  CHECK(told("/system.slice/system-other.slice/" + name).empty());
  CHECK(told("/system.slice/system-xecho.slice/" + name).empty());
  CHECK(told("/system.slice/system-systemd\\x2dcoredump.slice/systemd-coredump@0-4711-0.service").empty());
}

TEST_CASE("names are as systemd escapes them, and say whose they are") {
  const std::string slice = "/system.slice/system-my\\x2decho.slice";
  CHECK(told(slice + "/my-echo@0-unknown.service") == "my-echo@.service of " + slice);
  CHECK(identify_template(slice).unit == "my-echo@.service");
  const std::string manager = "/user.slice/user-1000.slice/user@1000.service/app.slice/app-echo.slice";
  const auto of_user = service_of_connections(manager + "/echo@0-unknown.service");
  REQUIRE(of_user);
  CHECK(of_user->user == "1000");
  CHECK(of_user->path == manager);
  CHECK(identify_template(manager).user == "1000");
  CHECK(is_template(*of_user));
  CHECK_FALSE(is_template(tacho::targets::identify("/system.slice/echo.service")));
}

TEST_CASE("all connections' services are one target, by their slice, and stay one between connections") {
  World world = world_of({"/init.scope", "/system.slice", kSlice, instance("0-127.0.0.1:80-127.0.0.1:9"),
                          instance("1-127.0.0.1:80-127.0.0.1:10"), instance("main")});
  add_process(world, 1, 0, "/usr/lib/systemd/systemd");
  listen(world, "/init.scope", 1, 80);
  const std::string all = "target=echo@.service | " + kSlice + " " + instance("0-127.0.0.1:80-127.0.0.1:9") + " " +
                          instance("1-127.0.0.1:80-127.0.0.1:10") + " " + instance("main") + " | |";
  CHECK(plan({}, world) == Lines{all});
  SECTION("one that listens itself is its own") {
    listen(world, instance("main"), 20, 81);
    CHECK(plan({}, world).size() == 2);
  }
  SECTION("a rule or an exclusion comes first") {
    Config config;
    config.discovery.exclude = {kSlice};
    CHECK(plan(config, world).empty());
    config.discovery.exclude = {};
    config.discovery.listeners = Listeners::always;
    config.targets = {cgroup_rule("echo", kSlice)};
    CHECK(plan(config, world).size() == 1);
  }
  SECTION("nobody is connected") {
    world = world_of({"/system.slice", kSlice});
    Earlier earlier{.cgroups = {kSlice}, .templates = {kSlice}};
    earlier.inhabited = [](const std::string&) { return false; };
    const auto idle = TargetRules::compile({})->plan(world, earlier);
    CHECK(brief(idle, world) == Lines{"target=echo@.service | " + kSlice + " | |"});
    CHECK_FALSE(idle.front().drains);
    world.cgroups.erase(kSlice);
    CHECK(TargetRules::compile({})->plan(world, earlier).empty());
  }
}
