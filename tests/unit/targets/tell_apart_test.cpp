#include <catch2/catch.hpp>
#include <string>

#include "targets/plan.h"
#include "worlds.h"

using tacho::config::Config;
using tacho::config::ContainerLabels;
using tacho::targets::Earlier;
using tacho::targets::TargetRules;
using tacho::targets::World;
using namespace tacho::targets::test;

namespace {

const std::string kA(64, 'a');
const std::string kB(64, 'b');

/// A world in which somebody listens in each of these cgroups.
World serving(const std::vector<std::string>& paths) {
  World world = world_of(paths);
  for (std::uint32_t tgid = 10; const std::string& path : paths) {
    listen(world, path, tgid++, 80);
  }
  return world;
}

}  // namespace

TEST_CASE("services of one name of the machine, two users and a virtual machine are four targets") {
  const World world =
      serving({"/system.slice/web.service", "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service",
               "/user.slice/user-1001.slice/user@1001.service/app.slice/web.service",
               "/machine.slice/machine-vm.scope/payload/system.slice/web.service"});
  Lines names;
  for (const auto& target : TargetRules::compile({})->plan(world, {})) {
    names.push_back(target.name);
  }
  CHECK(names == Lines{"vm/web.service", "web.service", "user@1000/web.service", "user@1001/web.service"});
}

TEST_CASE("two living containers of one name never become one series, and keep their labels while they live") {
  const std::string docker = "/docker/" + kA;
  const std::string podman = "/machine.slice/libpod-" + kB + ".scope";
  World world = serving({docker, podman});
  world.names[docker] = {"", "", "web"};
  world.names[podman] = {"", "", "web"};
  const std::string marked = "target=web container=web runtime=podman | " + podman + " | |";
  CHECK(plan({}, world) == Lines{"target=web container=web | " + docker + " | |", marked});
  const auto rules = TargetRules::compile({}).value();
  Earlier earlier;
  for (const auto& target : rules.plan(world, {})) {
    if (!target.mark.empty()) {
      earlier.marks[target.identity.path] = target.mark;
    }
  }
  world.cgroups.erase(docker);
  world.listeners.erase(world.listeners.begin());
  CHECK(brief(rules.plan(world, earlier), world) == Lines{marked});
  CHECK(plan({}, world) == Lines{"target=web container=web | " + podman + " | |"});
}

TEST_CASE("containers of one name and engine are told apart by their ids, the older one keeping its labels") {
  const std::string first = "/docker/" + kB;
  const std::string second = "/docker/" + kA;
  World world = serving({first, second});
  world.names[first] = {"", "", "web"};
  world.names[second] = {"", "", "web"};
  CHECK(plan({}, world) == Lines{"target=web container=web container_id=" + kA + " | " + second + " | |",
                                 "target=web container=web | " + first + " | |"});
}

TEST_CASE("an id in two cgroups is two targets, and the runtime's own has the labels even if it is younger") {
  const std::string forged = "/docker/" + kB + "/docker/" + kA;
  const std::string own = "/docker/" + kA;
  World world = serving({forged, own});
  CHECK(plan({}, world) == Lines{"target=aaaaaaaaaaaa | " + own + " | |",
                                 "target=aaaaaaaaaaaa cgroup=" + forged + " | " + forged + " | |"});
}

TEST_CASE("pods of one name are told apart when both are there") {
  const auto path = [](char pod, const std::string& id) {
    return "/kubepods/pod0a1b2c3d-0000-4000-8000-00112233aab" + std::string(1, pod) + "/" + id;
  };
  World world = serving({path('1', kA), path('2', kB)});
  world.names[path('1', kA)] = {"shop", "db-0", "db"};
  world.names[path('2', kB)] = {"shop", "db-0", "db"};
  CHECK(plan({}, world).size() == 2);
  Config config;
  config.labels.drop = {ContainerLabels::Label::pod};
  CHECK(plan(config, world).size() == 2);
}

TEST_CASE("what the configuration does not tell apart is one target") {
  const std::string first = "/kubepods/pod0a1b2c3d-0000-4000-8000-00112233aab1/" + kA;
  const std::string second = "/kubepods/pod0a1b2c3d-0000-4000-8000-00112233aab2/" + kB;
  World world = serving({first, second});
  world.names[first] = {"shop", "api-1", "api"};
  world.names[second] = {"shop", "api-2", "api"};
  Config config;
  config.labels.drop = {ContainerLabels::Label::pod};
  CHECK(plan(config, world) ==
        Lines{"target=shop/api namespace=shop container=api | " + first + " " + second + " | |"});
}

TEST_CASE("a user's container carries the user, whatever it is called") {
  const std::string own = "/docker/" + kA;
  const std::string users = "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + kB + ".scope";
  World world = serving({own, users});
  world.names[own] = {"", "", "web"};
  world.names[users] = {"", "", "web"};
  CHECK(plan({}, world) == Lines{"target=web container=web | " + own + " | |",
                                 "target=user@1000/web container=web user=1000 | " + users + " | |"});
  Config config;
  config.targets.emplace_back();
  config.targets[0].name = "w";
  config.targets[0].container = tacho::config::ContainerSelector{.name = "web", .namespace_ = {}, .pod = {}};
  CHECK(plan(config, world) ==
        Lines{"target=w container=web | " + own + " | |", "target=w container=web user=1000 | " + users + " | |"});
}

TEST_CASE("managers, helpers of engines and socket units are no targets") {
  const std::string user = "/user.slice/user-1000.slice/user@1000.service";
  World world = serving({"/init.scope", user + "/init.scope", "/system.slice/ssh.socket"});
  world.cgroups[user] = 500;
  listen(world, "/", 1, 8090);
  add_process(world, 1, 0, "[systemd]");
  for (std::uint32_t tgid = 20; const char* helper : {"/usr/bin/docker-proxy", "/usr/lib/podman/rootlessport"}) {
    listen(world, user, tgid, 8080);
    add_process(world, tgid++, 1, helper);
  }
  for (auto& listener : world.listeners) {
    listener.kind = listener.port == 80 ? TACHO_LISTENER_UNIX : TACHO_LISTENER_TCP;
  }
  CHECK(plan({}, world).empty());
  listen(world, user, 30, 8000);
  add_process(world, 30, 1, "/usr/bin/python3");
  CHECK(plan({}, world) == Lines{"target=python3:8000 | | 30 |"});
}
