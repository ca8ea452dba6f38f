#include "targets/surroundings.h"

#include <catch2/catch.hpp>

#include "temp_tree.h"

namespace {

using tacho::targets::CgroupIdentity;
using tacho::targets::Paths;
using tacho::targets::TargetRules;
using Lines = std::vector<std::string>;

TargetRules rules(const tacho::config::Config& config = {}) {
  auto compiled = TargetRules::compile(config);
  REQUIRE(compiled);
  return *std::move(compiled);
}

tacho::config::Config selecting(const char* container) {
  tacho::config::Config config;
  tacho::config::TargetRule rule;
  rule.name = "web";
  rule.container.emplace();
  rule.container->name = container;
  config.targets.push_back(rule);
  return config;
}

Paths paths_of(const TempTree& tree) {
  Paths paths;
  paths.procfs = tree.path();
  return paths;
}

Lines missing(const TempTree& tree, const Lines& paths) {
  std::vector<CgroupIdentity> unnamed;
  for (const std::string& path : paths) {
    unnamed.push_back(tacho::targets::identify(path));
    REQUIRE(unnamed.back().kind == CgroupIdentity::Kind::container);
  }
  return tacho::targets::missing_names({.log = tree.path() + "/log", .lib = tree.path() + "/lib"}, unnamed);
}

const std::string kId(64, 'a');

}  // namespace

TEST_CASE("a PID namespace of its own hides the servers that a configuration asks for") {
  const TempTree tree;
  const Paths paths = paths_of(tree);
  CHECK(tacho::targets::hidden_from(paths, rules()).empty());  // not known
  tree.link("self/ns/pid", "pid:[4026532201]");
  const Lines hidden = tacho::targets::hidden_from(paths, rules());
  REQUIRE(hidden.size() == 1);
  CHECK_THAT(hidden.front(), Catch::Contains("--pid host") && Catch::Contains("hostPID: true"));
  CHECK(tacho::targets::hidden_from(paths, rules(selecting("web"))).empty());
}

TEST_CASE("the first PID namespace hides nothing") {
  const TempTree tree;
  tree.link("self/ns/pid", "pid:[4026531836]");
  CHECK(tacho::targets::hidden_from(paths_of(tree), rules()).empty());
}

TEST_CASE("a part of the cgroups is not the machine's") {
  const TempTree tree;
  REQUIRE(tree.directory("cgroup") != 1);
  Paths paths = paths_of(tree);
  paths.cgroupfs = tree.path() + "/cgroup";
  for (const auto& asked : {rules(), rules(selecting("web"))}) {
    const Lines hidden = tacho::targets::hidden_from(paths, asked);
    REQUIRE(hidden.size() == 1);
    CHECK_THAT(hidden.front(), Catch::Contains(paths.cgroupfs + " are not the machine's") &&
                                   Catch::Contains("--volume /sys/fs/cgroup:/sys/fs/cgroup:ro"));
  }
}

TEST_CASE("containers of a runtime that uses cgroup v1 on a hybrid machine are told apart there") {
  const TempTree tree;
  (void)tree.directory("v2/system.slice/docker-" + kId + ".scope");
  (void)tree.directory("v1/system.slice/docker-" + kId + ".scope");
  Paths paths = paths_of(tree);
  paths.cgroupfs = tree.path() + "/v2";
  (void)tree.file("self/mountinfo", "31 30 0:27 / " + paths.cgroupfs + " rw - cgroup2 cgroup2 rw\n34 30 0:30 / " +
                                        tree.path() + "/v1 rw - cgroup cgroup rw,memory\n");
  const auto hint = [&] {
    Lines lines = tacho::targets::hidden_from(paths, rules());
    std::erase_if(lines, [](const std::string& line) { return line.find("v1") == std::string::npos; });
    return lines;
  };
  CHECK(hint().empty());
  const std::string alone(64, 'b');
  (void)tree.directory("v1/docker/" + alone + "/inside");
  REQUIRE(hint().size() == 1);
  CHECK_THAT(hint().front(), Catch::Contains("1 container is in cgroup v1 alone (/docker/" + alone + ")") &&
                                 Catch::Contains("--path.cgroupfs=" + tree.path() + "/v1"));
  paths.cgroup_v1 = true;
  CHECK(hint().empty());
}

TEST_CASE("who has no name hears which directory would tell it") {
  const TempTree tree;
  const Lines docker = missing(tree, {"/docker/" + kId});
  REQUIRE(docker.size() == 1);
  CHECK_THAT(docker.front(), Catch::Contains("1 container has no name") &&
                                 Catch::Contains("--volume /var/lib/docker/containers:" + tree.path()));
  const Lines podman = missing(tree, {"/machine.slice/libpod-" + kId + ".scope", "/machine.slice/libpod-" + kId});
  REQUIRE(podman.size() == 1);
  CHECK_THAT(podman.front(), Catch::Contains("2 containers have no name") && Catch::Contains("overlay-containers"));
  const Lines pod = missing(tree, {"/kubepods/burstable/pod11111111-2222-3333-4444-555555555555/" + kId});
  REQUIRE(pod.size() == 1);
  CHECK_THAT(pod.front(), Catch::Contains("--volume /var/log/containers:"));
  CHECK(missing(tree, {}).empty());
}

TEST_CASE("a directory that is there tells what it knows") {
  const TempTree tree;
  static_cast<void>(tree.directory("lib/docker/containers"));
  static_cast<void>(tree.directory("log/containers"));
  CHECK(missing(tree, {"/docker/" + kId}).empty());
  CHECK(missing(tree, {"/kubepods/burstable/pod11111111-2222-3333-4444-555555555555/" + kId}).empty());
}
