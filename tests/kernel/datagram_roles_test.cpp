// Which datagram sockets serve and which ask, whatever comes first.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;
constexpr std::size_t kBytes = 40;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

UniqueFd datagram_socket() {
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  must(socket.get() >= 0, "socket");
  return socket;
}

/// On a free port from `first` to 32767, where the kernel gives none by itself; 0: one that it gives.
UniqueFd bound_socket(std::uint16_t first) {
  constexpr std::uint16_t kEnd = 32768;
  UniqueFd socket = datagram_socket();
  for (std::uint16_t port = first; port < kEnd; ++port) {
    const auto address = loopback(port);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return socket;
    }
  }
  throw std::runtime_error("no port is free");
}

void connect_to(const UniqueFd& socket, std::uint16_t port) {
  const auto address = loopback(port);
  must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "connect");
}

void send_to(const UniqueFd& socket, std::uint16_t port) {
  const std::string data(kBytes, 'd');
  const auto address = loopback(port);
  must(::sendto(socket.get(), data.data(), data.size(), 0, reinterpret_cast<const sockaddr*>(&address),
                sizeof(address)) == kBytes,
       "sendto");
}

}  // namespace

TEST_CASE("a datagram socket that asks is no server because something came before it asked") {
  constexpr std::uint16_t kFixed = 20011;
  for (const bool connected : {false, true}) {
    CAPTURE(connected);
    const Watched where;
    const UniqueFd peer = bound_socket(0);
    const std::uint16_t peer_port = port_of(peer);
    Child client(where.directory(), [&](Line& parent) {
      const UniqueFd socket = bound_socket(kFixed);
      if (connected) {
        connect_to(socket, peer_port);
      }
      parent.tell(port_of(socket));
      (void)parent.hear();  // something has come
      for (int i = 0; i < kRequests; ++i) {
        send_to(socket, peer_port);
        receive_once(socket, kBytes);
      }
      parent.tell();
      (void)parent.hear();
    });
    const auto client_port = static_cast<std::uint16_t>(client.hear());
    send_to(peer, client_port);
    client.tell();
    for (int i = 0; i < kRequests; ++i) {
      receive_once(peer, kBytes);
      send_to(peer, client_port);
    }
    (void)client.hear();
    CHECK(where.value("tacho_requests_total") == 0);
    const std::string name = connected ? "127.0.0.1:" + std::to_string(peer_port) : "other";
    CHECK(where.value("tacho_dependency_calls_total", {{"peer", name}}) == kRequests);
    client.tell();
    client.finish();
  }
}

TEST_CASE("a target with ports counts no datagram server on others") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  config.targets.front().ports = {1};
  Running tacho(config);
  for (const std::uint16_t port : {std::uint16_t{20011}, std::uint16_t{0}}) {
    CAPTURE(port);
    Child server(cgroup.directory(), [port](Line& parent) {
      const UniqueFd socket = bound_socket(port);
      const auto client_port = static_cast<std::uint16_t>(parent.hear());
      parent.tell(port_of(socket));
      for (int i = 0; i < kRequests; ++i) {
        receive_once(socket, kBytes);
        send_to(socket, client_port);
      }
      parent.tell();
      (void)parent.hear();
    });
    const UniqueFd client = bound_socket(0);
    server.tell(port_of(client));
    const auto server_port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kRequests; ++i) {
      send_to(client, server_port);
      receive_once(client, kBytes);
    }
    (void)server.hear();
    CHECK(tacho.page().value("tacho_requests_total", {{"target", "t"}}) == 0);
    server.tell();
    server.finish();
  }
}
