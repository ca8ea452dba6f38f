// Files of an engine that a user writes, for the containers of that user.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "named_containers.h"
#include "support/openings.h"

using namespace tacho::targets::test;
using tacho::targets::CgroupIdentity;
using tacho::test::Openings;

namespace {

CgroupIdentity container_of_mine(int number) {
  CgroupIdentity mine = container(id_of(number), "podman", "");
  mine.place = CgroupIdentity::Place::users;
  mine.user = std::to_string(::getuid());
  return mine;
}

}  // namespace

TEST_CASE("what a user puts in the place of an engine's file does no harm") {
  const TempTree tree;
  const std::string storage = "home/me/.local/share/containers/storage/overlay-containers";
  (void)tree.directory(storage);
  const std::string file = tree.path() + "/" + storage + "/containers.json";
  auto names = names_in(tree);
  SECTION("a pipe") {
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  }
  SECTION("a large file") {
    (void)tree.file(storage + "/containers.json", "[");
    std::filesystem::resize_file(file, std::uintmax_t{1} << 30);
  }
  SECTION("a directory") {
    (void)tree.directory(storage + "/containers.json");
  }
  SECTION("deep nesting") {
    (void)tree.file(storage + "/containers.json", std::string(1'000'000, '['));
  }
  SECTION("a link to what never ends") {
    tree.link(storage + "/containers.json", "/dev/zero");
  }
  SECTION("a name that would fill every page") {
    (void)tree.file(storage + "/containers.json",
                    R"([{"id": ")" + id_of(1) + R"(", "names": [")" + std::string(100'000, 'a') + "\"]}]");
  }
  SECTION("more than a user has containers") {
    (void)tree.file(storage + "/containers.json", R"([{"id": ")" + id_of(1) + R"(", "names": ["web"]}])");
    std::filesystem::resize_file(file, std::uintmax_t{2} << 20);
  }
  names.refresh({container_of_mine(1)});
  CHECK(names.known().empty());
}

TEST_CASE("of what a user says of a container as much is believed as an engine says") {
  const TempTree tree;
  const std::string storage = "home/me/.local/share/containers/storage/";
  constexpr int kLists = 100;
  std::vector<CgroupIdentity> mine;
  for (int i = 0; i < kLists; ++i) {
    mine.push_back(container_of_mine(i));
    const std::string deep = std::string(1000, '[') + std::string(1000, ']');
    (void)tree.directory(storage + std::to_string(i) + "-containers");
    (void)tree.file(storage + std::to_string(i) + "-containers/containers.json",
                    R"([{"id": ")" + id_of(i) + R"(", "names": ["web"], "more": )" + deep +
                        R"(, "metadata": "{\"image-name\": \")" + std::string(1000, 'a') + R"(\"}"}])");
  }
  auto names = names_in(tree);
  names.refresh(mine);
  CHECK(names.known().size() > 0);
  CHECK(names.known().size() <= 16);
  for (const auto& [id, name] : names.known()) {
    CHECK(name.container == "web");
    CHECK(name.image.empty());
  }
}

TEST_CASE("a home is searched only while a container of its user runs") {
  const TempTree tree;
  const std::string storage = "home/me/.local/share/containers/storage";
  (void)tree.file(storage + "/overlay-containers/containers.json",
                  R"([{"id": ")" + id_of(1) + R"(", "names": ["web"]}])");
  (void)tree.file("lib/docker/containers/" + id_of(2) + "/config.v2.json", R"({"Name": "/db"})");
  const Openings home(tree.path() + "/home");
  const Openings opened(tree.path() + "/" + storage);
  bool runs = false;
  auto names = names_in(tree, [&runs](const std::string&) { return runs; });
  CgroupIdentity others = container_of_mine(3);
  others.user = std::to_string(::getuid() + 1);
  names.refresh({container(id_of(2), "docker", ""), container_of_mine(1), others});
  CHECK(names.known().size() == 1);
  CHECK_FALSE(home.any());
  runs = true;
  names.refresh({container(id_of(2), "docker", ""), others});
  CHECK_FALSE(opened.any());
  names.refresh({container(id_of(2), "docker", ""), container_of_mine(1), others});
  CHECK(opened.any());
  CHECK(names.known().size() == 2);
}

TEST_CASE("a home is searched for a container whose cgroup is not to be seen") {
  const TempTree tree;
  (void)tree.file("home/me/.local/share/containers/storage/overlay-containers/containers.json",
                  R"([{"id": ")" + id_of(1) + R"(", "names": ["web"]}])");
  auto names = names_in(tree, [](const std::string&) { return std::nullopt; });
  names.refresh({container_of_mine(1)});
  CHECK(names.known().size() == 1);
}

TEST_CASE("a home that is a link is searched if its user has no other") {
  const TempTree tree;
  (void)tree.file("elsewhere/.local/share/containers/storage/vfs-containers/containers.json",
                  R"([{"id": ")" + id_of(1) + R"(", "names": ["web"]}])");
  tree.link("home/me", tree.path() + "/elsewhere");
  auto names = names_in(tree);
  names.refresh({container_of_mine(1)});
  CHECK(names.known().size() == 1);
}
