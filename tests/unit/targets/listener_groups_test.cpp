#include "targets/listener_groups.h"

#include <catch2/catch.hpp>
#include <string>

#include "worlds.h"

using tacho::targets::group_listeners;
using tacho::targets::Listener;
using tacho::targets::World;
using namespace tacho::targets::test;

namespace {

/// "name: 10 11" of each group.
Lines groups(const World& world, const std::map<std::uint32_t, std::string>& known = {}) {
  Lines lines;
  for (const auto& group : group_listeners(world.listeners, world.processes, known)) {
    std::string line = group.name + ":";
    for (const std::uint32_t tgid : group.processes) {
      line += " " + std::to_string(tgid);
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

TEST_CASE("a server is called by its executable and its lowest TCP port") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/bin/redis-server");
  listen(world, "/", 10, 16'379);
  listen(world, "/", 10, 6379);
  listen(world, "/", 10, 53).kind = TACHO_LISTENER_UDP;
  CHECK(groups(world) == Lines{"redis-server:6379: 10"});
}

TEST_CASE("a server without a port is called by its executable, an unreadable one is unknown") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/bin/dockerd");
  listen(world, "/", 10, 0).kind = TACHO_LISTENER_UNIX;
  listen(world, "/", 11, 80);
  CHECK(groups(world) == Lines{"dockerd: 10", "unknown:80: 11"});
}

TEST_CASE("a server whose executable has an empty name is unknown") {
  World world = world_of({});
  add_process(world, 10, 1, "/tmp/[]");
  listen(world, "/", 10, 0).kind = TACHO_LISTENER_UNIX;
  CHECK(groups(world) == Lines{"unknown: 10"});
}

TEST_CASE("a port that the kernel chose is no name: it is another one at the next start") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/bin/containerd");
  listen(world, "/", 10, 36'555).port_free = 1;
  CHECK(groups(world) == Lines{"containerd: 10"});
  listen(world, "/", 10, 50'051);
  CHECK(groups(world) == Lines{"containerd:50051: 10"});
}

TEST_CASE("names that are no text are text, and stay different") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/bin/a\xff");
  add_process(world, 20, 1, "/usr/bin/a\xfe");
  add_process(world, 30, 1, "[kube-controller-manager]");
  listen(world, "/", 10, 80);
  listen(world, "/", 20, 80);
  listen(world, "/", 30, 10'257);
  CHECK(groups(world) == Lines{"a\\xff:80: 10", "a\\xfe:80: 20", "kube-controller-manager:10257: 30"});
}

TEST_CASE("who holds the same socket belongs together, whatever it runs") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/sbin/apache2");
  add_process(world, 11, 1, "/usr/sbin/helper");
  listen(world, "/", 11, 80, 77);
  listen(world, "/", 10, 80, 77);
  CHECK(groups(world) == Lines{"apache2:80: 10 11"});
}

TEST_CASE("sockets join groups one after the other") {
  World world = world_of({});
  for (const std::uint32_t tgid : {10U, 11U, 12U}) {
    add_process(world, tgid, 1, "/bin/server");
  }
  listen(world, "/", 10, 80, 1);
  listen(world, "/", 12, 81, 2);
  listen(world, "/", 11, 80, 1);
  CHECK(groups(world) == Lines{"server:80: 10 11", "server:81: 12"});
  listen(world, "/", 11, 81, 2);
  CHECK(groups(world) == Lines{"server:80: 10 11 12"});
}

TEST_CASE("children of the same executable belong to their parent, others do not") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/sbin/nginx");
  add_process(world, 11, 10, "/usr/sbin/nginx");
  add_process(world, 5, 11, "/usr/sbin/nginx");  // numbers wrap around
  add_process(world, 12, 10, "/bin/sh");
  add_process(world, 13, 12, "/usr/sbin/nginx");
  add_process(world, 1, 0, "/usr/sbin/nginx");
  listen(world, "/", 10, 80);
  CHECK(groups(world) == Lines{"nginx:80: 5 10 11"});
}

TEST_CASE("the same program on the same port of another network is another server") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/bin/web");
  add_process(world, 20, 1, "/usr/bin/web");
  listen(world, "/", 10, 80);
  listen(world, "/", 20, 80).network = 4026532000;
  CHECK(groups(world) == Lines{"web:80: 10", "web:80@4026532000: 20"});
}

TEST_CASE("no two groups have the same name, even where nothing tells them apart") {
  World world = world_of({});
  for (const std::uint32_t tgid : {10U, 20U, 30U, 40U}) {
    add_process(world, tgid, 1, "/usr/bin/web");
    listen(world, "/", tgid, 80);  // SO_REUSEPORT: a socket each
  }
  const Lines lines = groups(world);
  const std::set<std::string> distinct(lines.begin(), lines.end());
  CHECK(distinct.size() == 4);
  std::set<std::string> names;
  for (const auto& group : group_listeners(world.listeners, world.processes, {})) {
    CHECK(names.insert(group.name).second);
  }
}

TEST_CASE("a name given earlier stays with its processes, and is given once") {
  World world = world_of({});
  add_process(world, 10, 1, "/usr/bin/web");
  add_process(world, 20, 1, "/usr/bin/web");
  listen(world, "/", 10, 80);
  listen(world, "/", 20, 81);
  CHECK(groups(world, {{20, "web:79"}}) == Lines{"web:80: 10", "web:79: 20"});
  CHECK(groups(world, {{10, "web:79"}, {20, "web:79"}}) == Lines{"web:79: 10", "web:81: 20"});
  CHECK(groups(world, {{20, "web:80"}}) == Lines{"web:80@" + std::to_string(kNetwork) + ": 10", "web:80: 20"});
  CHECK(groups(world, {{10, "web:81"}}) == Lines{"web:81: 10", "web:81@" + std::to_string(kNetwork) + ": 20"});
}

TEST_CASE("which sockets are a server's") {
  Listener listener{};
  listener.kind = TACHO_LISTENER_TCP;
  listener.port = 60'000;
  CHECK(tacho::targets::is_server_socket(listener));
  listener.kind = TACHO_LISTENER_UDP;
  CHECK_FALSE(tacho::targets::is_server_socket(listener));
  listener.port = 32'767;
  CHECK(tacho::targets::is_server_socket(listener));
  listener.port = 32'768;
  CHECK_FALSE(tacho::targets::is_server_socket(listener));
  listener.kind = TACHO_LISTENER_UNIX;
  listener.port = 0;
  CHECK_FALSE(tacho::targets::is_server_socket(listener));
}

TEST_CASE("no listeners, no groups") {
  CHECK(groups(world_of({"/a"})).empty());
}
