// The table of whom datagram sockets serve and call, when it is full.

#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

/// More than the table has room for.
constexpr int kCalls = 20000;

/// Calls from a new socket each time, as a resolver does.
void call_from_many_sockets(const Watched& where) {
  const UniqueFd peer = bound_socket(0);
  const std::uint16_t port = port_of(peer);
  Child caller(where.directory(), [&](Line&) {
    for (int i = 0; i < kCalls; ++i) {
      const UniqueFd socket = bound_socket(0);
      send_to(socket, port);
      (void)spin_for(socket);
    }
  });
  send_back(peer, kCalls);
  caller.finish();
}

}  // namespace

TEST_CASE("who waits for a reply is remembered, however many were called of late") {
  constexpr std::size_t kClients = 200;
  constexpr int kRounds = 20;
  const Watched callers;
  const Watched where;
  call_from_many_sockets(callers);
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd socket = bound_socket(20037);
    parent.tell(port_of(socket));
    for (int round = 0; round < kRounds; ++round) {
      std::array<sockaddr_in, kClients> from{};
      for (sockaddr_in& client : from) {
        client = spin_for(socket);
      }
      for (const sockaddr_in& client : from) {
        send_to(socket, ntohs(client.sin_port));
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int round = 0; round < kRounds; ++round) {
    std::vector<UniqueFd> clients;
    for (std::size_t i = 0; i < kClients; ++i) {
      clients.push_back(bound_socket(0));
      send_to(clients.back(), port);
    }
    for (const UniqueFd& client : clients) {
      (void)spin_for(client);
    }
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRounds * kClients);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(callers.value("tacho_requests_total") == 0);
  server.tell();
  server.finish();
}
