// Multipath TCP: sockets of their own beside TCP ones that only the kernel uses.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;
constexpr int kConnections = 3;
constexpr std::size_t kBytes = 64;

UniqueFd stream_socket(int protocol) {
  return UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol));
}

bool kernel_has_mptcp() {
  if (stream_socket(IPPROTO_MPTCP)) {
    return true;
  }
  WARN("skipped: this kernel gives no MPTCP sockets (net.mptcp.enabled)");
  return false;
}

UniqueFd listen_on_any(int protocol) {
  UniqueFd socket = stream_socket(protocol);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "bind");
  must(::listen(socket.get(), 16) == 0, "listen");
  return socket;
}

UniqueFd connect_by(int protocol, std::uint16_t port) {
  UniqueFd socket = stream_socket(protocol);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "connect");
  return socket;
}

/// Serves `kConnections` connections of `kRequests` requests, then waits for a word.
Child server_of(int protocol, const std::string& cgroup) {
  return Child(cgroup, [protocol](Line& parent) {
    const UniqueFd listener = listen_on_any(protocol);
    parent.tell(port_of(listener));
    for (int i = 0; i < kConnections; ++i) {
      serve(accept_from(listener), kRequests, kBytes, kBytes);
    }
    parent.tell();
    (void)parent.hear();
  });
}

void ask_by(int protocol, std::uint16_t port) {
  for (int i = 0; i < kConnections; ++i) {
    ask(connect_by(protocol, port), kRequests, kBytes, kBytes);
  }
}

void check(const Page& page) {
  const Labels target = {{"target", "t"}};
  CHECK(page.value("tacho_requests_total", target) == kConnections * kRequests);
  CHECK(page.value("tacho_connections_total", {{"target", "t"}, {"role", "server"}}) == kConnections);
  CHECK(page.value("tacho_connections_total", {{"target", "t"}, {"role", "client"}}) == 0);
  CHECK(page.value("tacho_requests_unanswered_total", target) == 0);
}

}  // namespace

TEST_CASE("an MPTCP server's requests and connections count once, whether its clients speak it or not") {
  if (!kernel_has_mptcp()) {
    return;
  }
  for (const int client : {IPPROTO_TCP, IPPROTO_MPTCP}) {
    for (const bool older : {false, true}) {
      CAPTURE(client, older);
      const Cgroup cgroup(playground() + "/" + unique_name());
      auto config = watching(cgroup.path());
      config.probes.poll.enabled = false;
      std::unique_ptr<Running> tacho;
      if (!older) {
        tacho = std::make_unique<Running>(config);
      }
      Child server = server_of(IPPROTO_MPTCP, cgroup.directory());
      const auto port = static_cast<std::uint16_t>(server.hear());
      if (older) {
        tacho = std::make_unique<Running>(config);
      }
      ask_by(client, port);
      (void)server.hear();
      CHECK(tacho->wait_for(
          [&] { return tacho->page().value("tacho_connections_active", {{"target", "t"}, {"role", "server"}}) == 0; }));
      check(tacho->page());
      server.tell();
      server.finish();
    }
  }
}

TEST_CASE("calls over MPTCP count once, under their peer, whether it speaks it or not") {
  if (!kernel_has_mptcp()) {
    return;
  }
  for (const int protocol : {IPPROTO_TCP, IPPROTO_MPTCP}) {
    CAPTURE(protocol);
    const Watched where;
    Child server = server_of(protocol, "");
    const auto port = static_cast<std::uint16_t>(server.hear());
    Child client(where.directory(), [port](Line& parent) {
      ask_by(IPPROTO_MPTCP, port);
      parent.tell();
      (void)parent.hear();
    });
    (void)client.hear();
    const std::string peer = "127.0.0.1:" + std::to_string(port);
    CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer}}) == kConnections * kRequests);
    CHECK(where.value("tacho_connections_total", {{"role", "client"}}) == kConnections);
    CHECK(where.value("tacho_requests_total") == 0);
    client.tell();
    client.finish();
    (void)server.hear();
    server.tell();
    server.finish();
  }
}
