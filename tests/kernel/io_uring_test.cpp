// What is not seen of servers that read and write through io_uring: their operations have hooks, their buffers are not
// found.

#include <netinet/in.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/frames.h"
#include "kernel/support/records.h"
#include "kernel/support/ring.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kConnections = 23;
constexpr std::size_t kReply = 100;

bool missing() {
  if (!Ring().available()) {
    WARN("skipped: this kernel lets nobody use io_uring");
    return true;
  }
  return false;
}

using Pieces = std::vector<std::string>;

/// A server that reads each turn in these pieces and answers it. By system calls, or all of it through io_uring.
void converse(const Watched& where, const std::vector<Pieces>& turns, bool through_ring,
              const std::string& reply = std::string(kReply, 'r')) {
  Child server(where.directory(), [&](Line& parent) {
    Ring ring;
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = accept_from(listener);
      for (const Pieces& turn : turns) {
        for (const std::string& piece : turn) {
          if (through_ring) {
            ring.receive(connection, piece.size());
          } else {
            receive_once(connection, piece.size());
          }
          parent.tell();
        }
        if (through_ring) {
          ring.send(connection, reply);
        } else {
          send_bytes(connection, reply);
        }
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd client = connect_tcp(port);
    for (const Pieces& turn : turns) {
      for (const std::string& piece : turn) {
        send_bytes(client, piece);
        (void)server.hear();
      }
      receive_once(client, reply.size());
    }
  }
  (void)server.hear();
  server.tell();
  server.finish();
}

double multiplexed(const Watched& where) {
  // Conditions need two samples, which are taken once a second.
  CHECK(shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "no_poll"}}) == 1; }));
  return where.value("tacho_target_condition", {{"condition", "multiplexed"}});
}

}  // namespace

TEST_CASE("requests that are read one by one through io_uring before the first is answered are one, and untold") {
  if (missing()) {
    return;
  }
  const std::string request = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const bool through_ring : {false, true}) {
    CAPTURE(through_ring);
    const Watched where;
    converse(where, {{request, request, request}}, through_ring);
    CHECK(where.value("tacho_requests_total") == kConnections);
    CHECK(multiplexed(where) == (through_ring ? 0 : 1));
  }
}

TEST_CASE("streams through io_uring count by turns, and nothing tells of them") {
  if (missing()) {
    return;
  }
  const std::string asked = kPreface + frame(kSettings, 0, 0) + frame(kHeaders, 1, 20) + frame(kHeaders, 3, 20);
  const Watched where;
  converse(where, {{asked}, {frame(kHeaders, 5, 20) + frame(kHeaders, 7, 20)}}, true);
  CHECK(where.value("tacho_requests_total") == 2 * kConnections);
  CHECK(multiplexed(where) == 0);
}

TEST_CASE("an interim response of HTTP through io_uring looks like any reply") {
  if (missing()) {
    return;
  }
  for (const bool through_ring : {false, true}) {
    CAPTURE(through_ring);
    const Watched where;
    converse(where, {{"PUT /a HTTP/1.1\r\nExpect: 100-continue\r\n\r\n"}}, through_ring,
             "HTTP/1.1 100 Continue\r\n\r\n");
    CHECK(where.value("tacho_requests_total") == (through_ring ? kConnections : 0));
  }
}

TEST_CASE("handshakes of TLS through io_uring count as requests") {
  if (missing()) {
    return;
  }
  for (const bool through_ring : {false, true}) {
    CAPTURE(through_ring);
    const Watched where;
    converse(where, {{kHello}, {kChangeCipherSpec + kFinished}, {kRequest}}, through_ring);
    CHECK(where.value("tacho_handshakes_total") == (through_ring ? 0 : 2 * kConnections));
    CHECK(where.value("tacho_requests_total") == (through_ring ? 3 : 1) * kConnections);
  }
}

TEST_CASE("datagrams sent through io_uring are taken for replies while something is open, whomever they go to") {
  if (missing()) {
    return;
  }
  const bool through_ring = GENERATE(false, true);
  CAPTURE(through_ring);
  const Watched where;
  const UniqueFd other = bound_socket(0);
  Child server(where.directory(), [through_ring, to_other = port_of(other)](Line& parent) {
    Ring ring;
    const UniqueFd socket = bound_socket(20'000);
    parent.tell(port_of(socket));
    for (int i = 0; i < kConnections; ++i) {
      // What is read before the hook of its arrival has run leaves its sender to a guess.
      (void)parent.hear();
      (void)spin_for(socket);
      if (through_ring) {
        ring.send_to(socket, std::string(kDatagramBytes, 'd'), to_other);
      } else {
        send_to(socket, to_other);
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  const UniqueFd client = bound_socket(0);
  for (int i = 0; i < kConnections; ++i) {
    send_to(client, port);
    server.tell();
    (void)spin_for(other);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == (through_ring ? kConnections : 0));
  CHECK(where.value("tacho_requests_in_flight") == (through_ring ? 0 : kConnections));
  server.tell();
  server.finish();
}
