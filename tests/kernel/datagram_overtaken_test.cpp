// Datagrams that are read before the hook of their arrival has run, on another CPU.

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

TEST_CASE("an answer that is read before its arrival is told is no request") {
  // Who asks spins: some answers are read while the one who sent them has not come to the hook of their arrival.
  constexpr int kCalls = 20000;
  const Watched where;
  const UniqueFd peer = bound_socket(0);
  const std::uint16_t peer_port = port_of(peer);
  Child client(where.directory(), [&](Line& parent) {
    const UniqueFd socket = bound_socket(20031);
    parent.tell(port_of(socket));
    (void)parent.hear();  // something has come
    for (int i = 0; i < kCalls; ++i) {
      send_to(socket, peer_port);
      (void)spin_for(socket);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto client_port = static_cast<std::uint16_t>(client.hear());
  send_to(peer, client_port);
  client.tell();
  for (int i = 0; i < kCalls; ++i) {
    (void)spin_for(peer);
    send_to(peer, client_port);
  }
  (void)client.hear();
  CHECK(where.value("tacho_requests_total") == 0);
  const std::string name = "127.0.0.1:" + std::to_string(peer_port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", name}}) == kCalls);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  client.tell();
  client.finish();
}
