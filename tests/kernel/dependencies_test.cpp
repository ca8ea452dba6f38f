// Whom a target calls: names of peers, their limit.

#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;

double calls(const Page& page, const std::string& peer) {
  return page.value("tacho_dependency_calls_total", {{"target", "t"}, {"peer", peer}});
}

/// To an address of the loopback network over an IPv6 socket, as Java connects.
UniqueFd connect_mapped(std::uint8_t last, std::uint16_t port) {
  UniqueFd connection(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in6 peer{};
  peer.sin6_family = AF_INET6;
  peer.sin6_port = htons(port);
  const std::uint8_t address[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, last};
  std::copy(std::begin(address), std::end(address), std::begin(peer.sin6_addr.s6_addr));
  must(::connect(connection.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) == 0, "connect");
  return connection;
}

UniqueFd listen_everywhere() {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  must(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0, "bind");
  must(::listen(listener.get(), 8) == 0, "listen");
  return listener;
}

tacho::config::Config calling(const std::string& path) {
  auto config = watching(path);
  config.probes.poll.enabled = false;
  return config;
}

}  // namespace

TEST_CASE("IPv4 peers are the same over IPv6 sockets, and networks go by their names, the longest prefix first") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = calling(cgroup.path());
  config.peers = {{.name = "near", .networks = {"127.0.0.0/8"}},
                  {.name = "odd", .networks = {"127.0.0.3/32", "fd00::/8"}},
                  {.name = "six", .networks = {"::1"}}};
  const bool named = GENERATE(false, true);
  CAPTURE(named);
  if (!named) {
    config.peers.clear();
  }
  Running tacho(config);
  const UniqueFd listener = listen_everywhere();
  const std::uint16_t port = port_of(listener);
  Child caller(cgroup.directory(), [port](Line& parent) {
    for (std::uint8_t last = 1; last <= 3; ++last) {
      ask(connect_mapped(last, port), kRequests, 10, 10);
    }
    ask(connect_tcp(port), kRequests, 10, 10);
    parent.tell();
    (void)parent.hear();
  });
  for (int connection = 0; connection < 4; ++connection) {
    serve(accept_from(listener), kRequests, 10, 10);
  }
  (void)caller.hear();
  const Page page = tacho.page();
  const std::string at = ":" + std::to_string(port);
  if (named) {
    CHECK(calls(page, "near" + at) == 3 * kRequests);
    CHECK(calls(page, "odd" + at) == kRequests);
  } else {
    CHECK(calls(page, "127.0.0.1" + at) == 2 * kRequests);
    CHECK(calls(page, "127.0.0.2" + at) == kRequests);
    CHECK(calls(page, "127.0.0.3" + at) == kRequests);
  }
  caller.tell();
  caller.finish();
}

TEST_CASE("peers beyond the limit are counted together as other, and told as such") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  config.limits.max_peers = 2;
  Running tacho(config);
  std::vector<UniqueFd> dependencies;
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < 4; ++i) {
    dependencies.push_back(listen_tcp());
    ports.push_back(port_of(dependencies.back()));
  }
  Child caller(cgroup.directory(), [&ports](Line& parent) {
    for (const std::uint16_t port : ports) {
      const UniqueFd connection = connect_tcp(port);
      ask(connection, kRequests, 10, 10);
    }
    parent.tell();
    (void)parent.hear();
  });
  for (const UniqueFd& dependency : dependencies) {
    serve(accept_from(dependency), kRequests, 10, 10);
  }
  (void)caller.hear();
  const Page page = tacho.page();
  CHECK(calls(page, "127.0.0.1:" + std::to_string(ports[0])) == kRequests);
  CHECK(calls(page, "127.0.0.1:" + std::to_string(ports[1])) == kRequests);
  CHECK(calls(page, "other") == 2 * kRequests);
  caller.tell();
  caller.finish();
}
