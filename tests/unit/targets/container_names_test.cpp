#include "targets/container_names.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "named_containers.h"
#include "no_descriptors.h"
#include "targets/kubelet_links.h"

using tacho::targets::CgroupIdentity;
using tacho::targets::ContainerName;
using tacho::targets::ContainerNames;
using tacho::targets::NameSources;
using tacho::targets::parse_pod_log;

using namespace tacho::targets::test;

namespace {

std::string log_of(const std::string& pod, const std::string& name, const std::string& uid = kUid) {
  return "/var/log/pods/shop_" + pod + "_" + uid + "/" + name + "/0.log";
}

/// The kubelet's link for a container of the namespace "shop", cut where its name would be too long for a file.
void link_log(const TempTree& tree, const std::string& pod, const std::string& name, const std::string& id,
              const std::string& target) {
  const std::string file = pod + "_shop_" + name + "-" + id;
  tree.link("log/containers/" + file.substr(0, 251) + ".log", target);
}

}  // namespace

TEST_CASE("the path of a pod's log names it") {
  const auto log =
      parse_pod_log("/var/log/pods/kube-system_etcd-node.example_0123456789abcdef0123456789abcdef/etcd/2.log");
  REQUIRE(log);
  CHECK(log->name == ContainerName{"kube-system", "etcd-node.example", "etcd"});
  CHECK(log->uid == "0123456789abcdef0123456789abcdef");
  for (const char* other : {"", "/var/log/pods", "/var/log/pods/", "/var/log/pods/a_b/c/0.log", "/var/log/pods/a_b_c",
                            "/var/log/pods/a_b_c/", "/var/lib/docker/containers/x/x-json.log"}) {
    CAPTURE(other);
    CHECK_FALSE(parse_pod_log(other));
  }
}

TEST_CASE("containers of pods go by the kubelet's links") {
  const TempTree tree;
  link_log(tree, "api-1", "web-server", id_of(1), log_of("api-1", "web-server"));
  link_log(tree, "api-1", "init", id_of(2), log_of("api-1", "init"));
  // Docker's logs are elsewhere: the link's own name says it.
  link_log(tree, "api-2", "web-server", id_of(3), "/var/lib/docker/containers/x/x-json.log");
  tree.link("log/containers/nonsense.log", "/nowhere");
  tree.link("log/containers/more_nonsense", "/nowhere");
  auto names = names_in(tree);
  // The last one is the pod's pause container.
  CHECK(names.refresh({container(id_of(1)), container(id_of(2)), container(id_of(3)), container(id_of(4))}) == 1);
  CHECK(names.known().size() == 3);
  CHECK(names.known().at("/" + id_of(1)) == ContainerName{"shop", "api-1", "web-server"});
  CHECK(names.known().at("/" + id_of(2)) == ContainerName{"shop", "api-1", "init"});
  CHECK(names.known().at("/" + id_of(3)) == ContainerName{"shop", "api-2", "web-server"});
}

TEST_CASE("links whose names were cut lead to their container by the pod's uid and what is left of the id") {
  const TempTree tree;
  const std::string pod(170, 'p');
  const std::string other_uid = "ffffffff-0000-4000-8000-00112233aabb";
  link_log(tree, pod, std::string(40, 'c'), id_of(1), log_of(pod, std::string(40, 'c')));
  link_log(tree, pod, std::string(41, 'd'), id_of(2), log_of(pod, std::string(41, 'd'), other_uid));
  auto names = names_in(tree);
  CHECK(names.refresh({container(id_of(1)), container(id_of(2), "containerd", other_uid), container(id_of(3))}) == 1);
  CHECK(names.known().at("/" + id_of(1)) == ContainerName{"shop", pod, std::string(40, 'c')});
  CHECK(names.known().at("/" + id_of(2)) == ContainerName{"shop", pod, std::string(41, 'd')});
}

TEST_CASE("names are remembered while the container is there, also when its link is gone, and forgotten with it") {
  const TempTree tree;
  link_log(tree, "api-1", "web", id_of(1), log_of("api-1", "web"));
  auto names = names_in(tree);
  CHECK(names.refresh({container(id_of(1))}) == 0);
  std::filesystem::remove_all(tree.path() + "/log/containers");
  CHECK(names.refresh({container(id_of(1)), container(id_of(2))}) == 1);
  CHECK(names.known().size() == 1);
  CHECK(names.refresh({}) == 0);
  CHECK(names.known().empty());
}

TEST_CASE("a container whose name is missing is told as new once, also where another one without a name has gone") {
  const TempTree tree;
  auto names = names_in(tree);
  CHECK(names.refresh({container(id_of(1))}) == 1);
  CHECK(names.misses_new());
  CHECK(names.refresh({container(id_of(1))}) == 1);
  CHECK_FALSE(names.misses_new());
  CHECK(names.refresh({container(id_of(2))}) == 1);
  CHECK(names.misses_new());
  link_log(tree, "api-1", "web", id_of(2), log_of("api-1", "web"));
  CHECK(names.refresh({container(id_of(2))}) == 0);
  CHECK_FALSE(names.misses_new());
}

TEST_CASE("podman's and Docker's names are read from their files, whatever else is in them") {
  const TempTree tree;
  const std::string podman = R"([{"id": ")" + id_of(1) + R"(", "names": ["web", "web-old"],
                                  "metadata": "{\"image-name\": \"localhost/web:3\"}"}, {"id": 7}, [],
                                 {"id": ")" +
                             id_of(2) + R"(", "names": []}])";
  (void)tree.file("lib/containers/storage/overlay-containers/containers.json", podman);
  (void)tree.file("lib/containers/storage/vfs-containers/containers.json", "[{");
  (void)tree.file("lib/docker/containers/" + id_of(3) + "/config.v2.json",
                  R"({"Name": "/db", "Config": {"Image": "postgres:16", "Env": [], "Labels":
                      {"com.docker.compose.project": "shop", "com.docker.compose.service": "db", "x": 7}}})");
  (void)tree.file("lib/docker/containers/" + id_of(4) + "/config.v2.json", R"({"Name": 4})");
  auto names = names_in(tree);
  CHECK(names.refresh({container(id_of(1), "podman", ""), container(id_of(2), "podman", ""),
                       container(id_of(3), "docker", ""), container(id_of(4), "docker", ""),
                       container(id_of(5), "docker", "")}) == 0);
  CHECK(names.known().size() == 2);
  CHECK(names.known().at("/" + id_of(1)) == ContainerName{"", "", "web", "localhost/web:3"});
  CHECK(names.known().at("/" + id_of(3)) == ContainerName{"", "", "db", "postgres:16", "shop", "db"});
}

TEST_CASE("500 pods that come and go leave nothing behind") {
  const TempTree tree;
  auto names = names_in(tree);
  for (int round = 0; round < 3; ++round) {
    std::vector<CgroupIdentity> containers;
    for (int pod = 0; pod < 500; ++pod) {
      const int number = 1000 * (round + 1) + pod;
      link_log(tree, "pod-" + std::to_string(number), "app", id_of(number),
               log_of("pod-" + std::to_string(number), "app"));
      containers.push_back(container(id_of(number)));
    }
    CHECK(names.refresh(containers) == 0);
    CHECK(names.known().size() == 500);
    CHECK(names.known().at("/" + id_of(1000 * (round + 1) + 499)).pod ==
          "pod-" + std::to_string(1000 * (round + 1) + 499));
  }
}

TEST_CASE("a link names only a container of the same pod") {
  const TempTree tree;
  const std::string other_uid = "ffffffff-0000-4000-8000-00112233aabb";
  link_log(tree, "api-1", "web", id_of(1), log_of("api-1", "web"));
  link_log(tree, "api-2", "web", id_of(2), "/var/lib/docker/containers/x/x-json.log");
  auto names = names_in(tree);
  CHECK(names.refresh({container(id_of(1), "containerd", other_uid)}) == 1);
  // Without dashes in the driver's path it is the same.
  CHECK(names.refresh({container(id_of(1), "containerd", "0a1b2c3d00004000800000112233aabb")}) == 0);
  CgroupIdentity elsewhere = container(id_of(2));
  elsewhere.place = CgroupIdentity::Place::elsewhere;
  CHECK(names.refresh({elsewhere}) == 1);
}

TEST_CASE("where two cgroups carry one id, the runtime's own has the name, whichever came first") {
  const TempTree tree;
  link_log(tree, "api-1", "web", id_of(1), log_of("api-1", "web"));
  CgroupIdentity forged = container(id_of(1));
  forged.path = "/docker/x/kubepods/forged";
  forged.place = CgroupIdentity::Place::inside_container;
  auto names = names_in(tree);
  CHECK(names.refresh({forged}) == 0);
  CHECK(names.known().contains(forged.path));
  CHECK(names.refresh({forged, container(id_of(1))}) == 0);
  CHECK(names.known().size() == 1);
  CHECK(names.known().contains("/" + id_of(1)));
  // Among equals the one that was there before keeps it.
  CgroupIdentity twin = container(id_of(1));
  twin.path = "/a";
  CHECK(names.refresh({twin, container(id_of(1))}) == 0);
  CHECK(names.known().size() == 1);
  CHECK(names.known().contains("/" + id_of(1)));
}

TEST_CASE("where two cgroups carry one id, the one with processes in it has the name") {
  const TempTree tree;
  link_log(tree, "api-1", "web", id_of(1), log_of("api-1", "web"));
  // What a runtime has left that was killed.
  CgroupIdentity left = container(id_of(1));
  left.path = "/left";
  CgroupIdentity living = container(id_of(1));
  living.place = CgroupIdentity::Place::runtime_root;
  // Whoever is root in a container cannot take it from there, however alive.
  CgroupIdentity forged = container(id_of(1));
  forged.path = "/docker/x/kubepods/forged";
  forged.place = CgroupIdentity::Place::inside_container;
  bool lives = true;
  auto names =
      names_in(tree, [&](const std::string& path) { return path == forged.path || (path == living.path && lives); });
  CHECK(names.refresh({left}) == 0);
  CHECK(names.known().contains(left.path));
  CHECK(names.refresh({forged, left, living}) == 0);
  CHECK(names.known().size() == 1);
  CHECK(names.known().contains(living.path));
  // Both are empty: it stays where it is.
  lives = false;
  CHECK(names.refresh({forged, left, living}) == 0);
  CHECK(names.known().size() == 1);
  CHECK(names.known().contains(living.path));
}

TEST_CASE("a renamed container goes by its new name at the next look") {
  const TempTree tree;
  const auto rename = [&tree](int number, const std::string& name) {
    const std::string file = "lib/docker/containers/" + id_of(number) + "/config.v2.json";
    std::filesystem::remove(tree.path() + "/" + file);
    CHECK_FALSE(tree.file(file, R"({"Name": "/)" + name + R"("})").empty());
  };
  rename(1, "web");
  auto names = names_in(tree);
  CHECK(names.refresh({container(id_of(1), "docker", "")}) == 0);
  CHECK(names.known().at("/" + id_of(1)).container == "web");
  CHECK_FALSE(names.outdated());
  rename(1, "web-old");
  CHECK(names.outdated());
  rename(2, "web");
  CHECK(names.refresh({container(id_of(1), "docker", ""), container(id_of(2), "docker", "")}) == 0);
  CHECK(names.known().at("/" + id_of(1)).container == "web-old");
  CHECK(names.known().at("/" + id_of(2)).container == "web");
  CHECK_FALSE(names.outdated());
  // What an engine has forgotten already keeps its name as long as its cgroup is there.
  std::filesystem::remove_all(tree.path() + "/lib/docker/containers/" + id_of(1));
  CHECK(names.refresh({container(id_of(1), "docker", ""), container(id_of(2), "docker", "")}) == 0);
  CHECK(names.known().at("/" + id_of(1)).container == "web-old");
}

TEST_CASE("a name that could not be read for want of descriptors is read at the next look") {
  const TempTree tree;
  const auto file_of = [&tree](int number) {
    return tree.file("lib/docker/containers/" + id_of(number) + "/config.v2.json",
                     R"({"Name": "/web)" + std::to_string(number) + R"("})");
  };
  CHECK_FALSE(file_of(1).empty());
  auto names = names_in(tree);
  CHECK(names.refresh({container(id_of(1), "docker", "")}) == 0);
  CHECK_FALSE(file_of(2).empty());
  const std::vector<CgroupIdentity> both{container(id_of(1), "docker", ""), container(id_of(2), "docker", "")};
  without_descriptors([&] { return names.refresh(both); });
  CHECK(names.known().at("/" + id_of(1)).container == "web1");
  CHECK(names.outdated());
  CHECK(names.refresh(both) == 0);
  CHECK(names.known().at("/" + id_of(2)).container == "web2");
  CHECK_FALSE(names.outdated());
}

TEST_CASE("an engine's containers are found in its other usual places, below whatever cgroup they are") {
  const TempTree tree;
  const std::string user = std::to_string(::getuid());
  const auto docker = [&tree](const std::string& root, int number, const std::string& name) {
    (void)tree.file(root + "/" + id_of(number) + "/config.v2.json", R"({"Name": "/)" + name + R"("})");
  };
  docker("lib/docker/100000.100000/containers", 1, "remapped");
  docker("snap/docker/common/var-lib-docker/containers", 2, "snap");
  docker("home/me/.local/share/docker/containers", 3, "rootless");
  (void)tree.file("home/me/.local/share/containers/storage/overlay-containers/volatile-containers.json",
                  R"([{"id": ")" + id_of(4) + R"(", "names": ["mine"]}])");
  docker("lib/docker/containers", 5, "parent");
  (void)tree.file("lib/containers/storage/overlay-containers/containers.json",
                  R"([{"id": ")" + id_of(6) + R"(", "names": ["podman"]}])");
  const auto of_user = [](CgroupIdentity identity, const std::string& number) {
    identity.place = CgroupIdentity::Place::users;
    identity.user = number;
    return identity;
  };
  CgroupIdentity parent = container(id_of(5), "", "");
  parent.place = CgroupIdentity::Place::elsewhere;
  auto names = names_in(tree);
  names.refresh({container(id_of(1), "docker", ""), container(id_of(2), "docker", ""),
                 of_user(container(id_of(3), "docker", ""), user), of_user(container(id_of(4), "podman", ""), user),
                 parent, container(id_of(6), "", "")});
  CHECK(names.known().size() == 6);
  CHECK(names.known().at("/" + id_of(3)).container == "rootless");
  CHECK(names.known().at("/" + id_of(4)).container == "mine");
  CHECK(names.known().at("/" + id_of(5)).container == "parent");
  // Nobody's files name another's containers.
  auto others = names_in(tree);
  others.refresh({container(id_of(3), "docker", ""), of_user(container(id_of(1), "docker", ""), user),
                  of_user(container(id_of(4), "podman", ""), user + "1")});
  CHECK(others.known().empty());
  CgroupIdentity inside = container(id_of(5), "docker", "");
  inside.place = CgroupIdentity::Place::inside_container;
  others.refresh({inside});
  CHECK(others.known().empty());
}
