#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "targets/plan.h"
#include "worlds.h"

using tacho::config::Config;
using tacho::config::ContainerLabels;
using tacho::config::ContainerSelector;
using tacho::targets::World;
using namespace tacho::targets::test;

namespace {

std::string id_of(char digit) {
  return std::string(64, digit);
}

std::string path_of(char digit) {
  return "/kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_00112233aab" + std::string(1, digit) +
         ".slice/cri-containerd-" + id_of(digit) + ".scope";
}

/// Three pods: api twice in "shop", dns in "kube-system"; the pause container of the first is '4'.
World node() {
  World world = world_of({path_of('1'), path_of('1') + "/inner", path_of('2'), path_of('3'), path_of('4')});
  world.names[path_of('1')] = {"shop", "api-1", "api"};
  world.names[path_of('2')] = {"shop", "api-2", "api"};
  world.names[path_of('3')] = {"kube-system", "dns-1", "dns"};
  return world;
}

tacho::config::TargetRule container_rule(const std::string& name, ContainerSelector selector) {
  tacho::config::TargetRule rule;
  rule.name = name;
  rule.container = std::move(selector);
  return rule;
}

}  // namespace

TEST_CASE("containers are selected by what they are called, each a target of its own") {
  Config config;
  config.targets = {container_rule("a", {.name = "ap?", .namespace_ = "shop", .pod = "api-*"})};
  CHECK(plan(config, node()) ==
        Lines{"target=a namespace=shop pod=api-1 container=api | " + path_of('1') + " " + path_of('1') + "/inner | |",
              "target=a namespace=shop pod=api-2 container=api | " + path_of('2') + " | |"});
  config.targets = {container_rule("a", {.name = "api", .namespace_ = {}, .pod = "api-2"})};
  CHECK(plan(config, node()) == Lines{"target=a namespace=shop pod=api-2 container=api | " + path_of('2') + " | |"});
}

TEST_CASE("system namespaces have to be asked for") {
  Config config;
  config.targets = {container_rule("all", {.name = "*", .namespace_ = {}, .pod = {}})};
  CHECK(plan(config, node()).size() == 2);
  config.targets.front().container->namespace_ = "kube-*";
  CHECK(plan(config, node()) ==
        Lines{"target=all namespace=kube-system pod=dns-1 container=dns | " + path_of('3') + " | |"});
  config.targets.front().container->namespace_.reset();
  config.discovery.exclude_namespaces = {"sh*"};
  CHECK(plan(config, node()).size() == 1);
}

TEST_CASE("discovered containers are called by namespace and name, and those of system namespaces left out") {
  World world = node();
  listen(world, path_of('1'), 11, 80);
  listen(world, path_of('3'), 13, 53);
  listen(world, path_of('4'), 14, 99);
  CHECK(plan({}, world) == Lines{"target=shop/api namespace=shop pod=api-1 container=api | " + path_of('1') + " " +
                                     path_of('1') + "/inner | |",
                                 "target=444444444444 | " + path_of('4') + " | |"});
  world.names[path_of('4')] = {"", "", "web"};
  CHECK(plan({}, world)[1] == "target=web container=web | " + path_of('4') + " | |");
}

TEST_CASE("a cgroup glob that names containers tells them apart by their names") {
  Config config;
  config.targets = {cgroup_rule("k", "/kubepods.slice/**/cri-containerd-*.scope")};
  const Lines lines = plan(config, node());
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].starts_with("target=k namespace=shop pod=api-1 container=api |"));
  CHECK(lines[3] == "target=k cgroup=" + path_of('4') + " | " + path_of('4') + " | |");
}

TEST_CASE("labels are renamed and dropped, and targets that are alike then are one") {
  Config config;
  config.targets = {container_rule("a", {.name = "api", .namespace_ = {}, .pod = {}})};
  config.labels.rename.namespace_ = "kube_namespace";
  config.labels.drop = {ContainerLabels::Label::pod};
  CHECK(plan(config, node()) == Lines{"target=a kube_namespace=shop container=api | " + path_of('1') + " " +
                                      path_of('1') + "/inner " + path_of('2') + " | |"});
}

TEST_CASE("an old and a new container of one name in a pod are one target") {
  const std::string pod = path_of('1').substr(0, path_of('1').rfind('/'));
  const std::string fresh = pod + "/cri-containerd-" + id_of('9') + ".scope";
  World world = world_of({path_of('1'), fresh});
  world.names[path_of('1')] = {"shop", "api-1", "api"};
  world.names[fresh] = world.names[path_of('1')];
  Config config;
  config.targets = {container_rule("a", {.name = "api", .namespace_ = {}, .pod = {}})};
  CHECK(plan(config, world) ==
        Lines{"target=a namespace=shop pod=api-1 container=api | " + path_of('1') + " " + fresh + " | |"});
}
