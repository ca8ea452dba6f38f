#include "targets/self.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "targets/plan.h"
#include "worlds.h"

using tacho::config::Config;
using tacho::config::SelfScope;
using tacho::config::TargetRule;
using namespace tacho::targets;
using namespace tacho::targets::test;

namespace {

own_cgroup record(std::uint64_t id, std::uint64_t parent, std::string_view name) {
  own_cgroup made{.id = id, .parent = parent, .name = {}};
  name.copy(made.name, sizeof(made.name) - 1);
  return made;
}

std::string id_of(char digit) {
  return std::string(64, digit);
}

const std::string kPod = "/kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_00112233aabb.slice";

Config selecting(SelfScope scope) {
  TargetRule rule;
  rule.name = "s";
  rule.self = scope;
  Config config;
  config.targets = {rule};
  return config;
}

}  // namespace

TEST_CASE("paths are put together from the way up and what is below") {
  const std::vector<own_cgroup> records{record(30, 20, "tacho"), record(20, 10, "pod"),   record(10, 1, "kubepods"),
                                        record(1, 0, ""),        record(30, 20, "tacho"), record(40, 20, "app"),
                                        record(41, 40, "inner")};
  const auto own = own_cgroups_of(records);
  REQUIRE(own);
  CHECK(own->path == "/kubepods/pod/tacho");
  CHECK(own->cgroups == std::map<std::string, std::uint64_t>{{"/", 1},
                                                             {"/kubepods", 10},
                                                             {"/kubepods/pod", 20},
                                                             {"/kubepods/pod/app", 40},
                                                             {"/kubepods/pod/app/inner", 41},
                                                             {"/kubepods/pod/tacho", 30}});
}

TEST_CASE("a cgroup whose parent is gone is left out, and the longest name is taken whole") {
  const std::string longest(sizeof(own_cgroup::name) - 1, 'n');
  const std::vector<own_cgroup> records{record(30, 1, "pod"), record(1, 0, ""), record(50, 49, "orphan"),
                                        record(51, 30, longest)};
  const auto own = own_cgroups_of(records);
  REQUIRE(own);
  CHECK(own->cgroups.size() == 3);
  CHECK(own->cgroups.at("/pod/" + longest) == 51);
}

TEST_CASE("the root cgroup, no answer at all, and one that is cut off are errors that say so") {
  const auto root = own_cgroups_of(std::vector{record(1, 0, "")});
  REQUIRE_FALSE(root);
  CHECK(root.error().code == ENOTSUP);
  CHECK_THAT(root.error().message, Catch::Contains("root cgroup"));
  CHECK(own_cgroups_of({}).error().code == ENOENT);
  // One above it was not to be had.
  const auto cut_off = own_cgroups_of(std::vector{record(30, 20, "tacho"), record(1, 0, "")});
  REQUIRE_FALSE(cut_off);
  CHECK(cut_off.error().code == ENOENT);
}

TEST_CASE("the pod is around the container, whatever the runtime made inside of it") {
  struct Row {
    std::string own;
    std::string pod;
  };
  const std::vector<Row> rows{
      {"/pod/tacho", "/pod"},
      {"/tacho", "/"},
      {kPod + "/cri-containerd-" + id_of('1') + ".scope", kPod},
      {kPod + "/crio-" + id_of('1') + ".scope/container", kPod},
      {"/docker/" + id_of('d') + kPod + "/cri-containerd-" + id_of('1') + ".scope", "/docker/" + id_of('d') + kPod}};
  for (const Row& row : rows) {
    CAPTURE(row.own);
    CHECK(pod_cgroup(row.own) == row.pod);
    CHECK_FALSE(is_container_of_own_pod(row.own, row.own));
    CHECK_FALSE(is_container_of_own_pod(row.pod, row.own));
  }
  const std::string own = rows[3].own;
  CHECK(is_container_of_own_pod(kPod + "/crio-" + id_of('2') + ".scope", own));
  CHECK_FALSE(is_container_of_own_pod(kPod + "/crio-" + id_of('1') + ".scope", own));
  CHECK_FALSE(is_container_of_own_pod(kPod + "/crio-" + id_of('2') + ".scope/container", own));
  CHECK_FALSE(is_container_of_own_pod(kPod + "/crio-conmon-" + id_of('2') + ".scope", own));
  CHECK(is_around_self(kPod + "/crio-" + id_of('2') + ".scope/container", own));
  CHECK_FALSE(is_around_self(kPod + "2/x", own));
}

TEST_CASE("containers of the pod are targets told apart by their ids, tacho's own is none") {
  const std::string app = kPod + "/crio-" + id_of('2') + ".scope";
  World world = world_of({kPod, kPod + "/crio-" + id_of('1') + ".scope",
                          kPod + "/crio-" + id_of('1') + ".scope/container", app, app + "/container", kPod + "/plain",
                          kPod + "/crio-conmon-" + id_of('2') + ".scope", "/kubepods.slice/other"});
  world.own_cgroup = kPod + "/crio-" + id_of('1') + ".scope/container";
  CHECK(plan(selecting(SelfScope::pod), world) ==
        Lines{"target=s container_id=" + id_of('2') + " | " + app + " " + app + "/container | |",
              "target=s cgroup=" + kPod + "/plain | " + kPod + "/plain | |"});
  CHECK(plan(selecting(SelfScope::cgroup), world) == Lines{"target=s | " + world.own_cgroup + " | |"});
}

TEST_CASE("a configuration of nothing but self needs no cgroups as files") {
  auto config = selecting(SelfScope::pod);
  const auto rules = [&config] { return TargetRules::compile(config).value(); };
  CHECK_FALSE(rules().needs_cgroup_tree());
  CHECK(rules().needs_self());
  CHECK(rules().needs_self(SelfScope::pod));
  CHECK_FALSE(rules().needs_self(SelfScope::cgroup));
  config.targets.push_back(cgroup_rule("web", "/web"));
  CHECK(rules().needs_cgroup_tree());
  config.targets.clear();
  CHECK(rules().needs_cgroup_tree());
  CHECK_FALSE(rules().needs_self());
}
