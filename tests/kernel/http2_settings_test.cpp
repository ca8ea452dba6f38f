// Connections of HTTP/2 under TLS whose server does not show that it chose it: what either side sends first tells.

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/served_in_turn.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kConnections = 7;
/// A server's part of a handshake that does not show what was chosen: all encrypted messages in one record.
const std::string kHidden = record(22, std::string(122, 's')) + kChangeCipherSpec + record(23, std::string(1001, 'a'));
/// Of TLS 1.2, which shows it in the ServerHello.
const std::string kHello12 = record(22, std::string(90, 's'));

/// What a client of TLS 1.3 sends in a record, by how long it is in the clear.
std::string plain(std::size_t bytes) {
  return record(23, std::string(bytes + 17, 'p'));
}

/// What Java sends so: it adds 16 bytes of nothing.
std::string padded(std::size_t bytes) {
  return plain(bytes + 16);
}

/// What a client says behind its Finished, in the pieces that the server reads: the first one with it. The server
/// answers that with a ticket and another record, and each further piece.
struct Beginning {
  std::string name;
  std::vector<std::string> pieces;
  bool told;
  int requests;
  std::string settings = plain(46);
  bool tls12 = false;
  std::string answer = plain(80);
};

std::vector<Beginning> beginnings() {
  const std::string settings = plain(82);  // preface, six settings, a window
  const std::string ack = plain(9);
  const std::string reply = plain(90);  // no settings are as long
  return {
      {"settings with Finished", {settings, ack + plain(270)}, true, 2},
      {"all behind Finished", {"", settings + ack + plain(270)}, true, 1},
      {"settings apart", {"", settings, ack, plain(270)}, true, 2},
      {"settings apart, and the server's then", {"", settings, ack, plain(270)}, true, 2, reply, false, plain(46)},
      {"settings without a window", {"", plain(69) + ack, plain(270)}, true, 2},
      {"settings and a request in a record, as Node and h2load send them", {plain(104), ack + plain(270)}, true, 2},
      {"the same, with Finished and another request", {plain(104) + plain(60), ack, plain(270)}, true, 3},
      {"the same, behind Finished", {"", plain(132), ack, plain(270)}, true, 3},
      {"Java's own TLS: gRPC", {padded(70), padded(9), plain(270)}, true, 2, padded(40)},
      {"Java's own TLS: its client, with Finished", {padded(132), padded(9), plain(270)}, true, 3, plain(40)},
      {"Java's own TLS: its client", {"", padded(132) + padded(9), plain(270)}, true, 2, padded(21)},
      {"what is as long as settings, and requests", {settings, plain(60), plain(60)}, false, 3},
      {"what is as long as settings, and requests, apart", {"", settings, plain(60), plain(60), ack}, false, 4},
      {"requests, then settings", {"", plain(120), settings, plain(120), ack, plain(270)}, false, 5},
      {"what is not as long as settings", {"", plain(81) + ack, plain(270)}, false, 2, reply},
      {"a head as long as settings, and a body of nine bytes", {"", plain(88) + ack, plain(270)}, false, 2, reply},
      {"head and body of nine bytes, apart", {"", plain(132), ack, plain(270)}, false, 3, reply},
      {"another request, then such a head and body", {"", plain(120), plain(132), ack, plain(270)}, false, 4},
      {"head and body of nine bytes, apart, from Java", {"", padded(132) + padded(9), plain(270)}, false, 2, reply},
      {"'100 Continue', and a body", {"", plain(132), plain(25), plain(270)}, false, 3, reply, false, plain(25)},
      {"short replies (redis)", {"", plain(40), plain(25), ack, ack}, false, 4, reply, false, plain(15)},
      {"short replies, a first request as long as settings",
       {"", plain(51), plain(25), ack},
       false,
       3,
       reply,
       false,
       plain(15)},
      {"short replies, the first one with the ticket (Cassandra)",
       {plain(40), ack, ack},
       false,
       3,
       ack,
       false,
       plain(15)},
      {"records of these lengths, under TLS 1.2", {"", settings, ack, plain(270)}, false, 3, reply, true},
  };
}

}  // namespace

TEST_CASE("HTTP/2 under TLS that no handshake tells of is told by the client's settings and its acknowledgement") {
  for (const Beginning& beginning : beginnings()) {
    CAPTURE(beginning.name);
    const bool old = beginning.tls12;
    const std::string chosen = old ? kHello12 : kHidden;
    const std::string flight = (old ? kKeyExchange : "") + kChangeCipherSpec + (old ? kFinished12 : kFinished);
    const std::string tickets =
        old ? kChangeCipherSpec + kFinished12 : record(23, std::string(413, 't')) + beginning.settings;
    const Watched where;
    Child server = served_in_turn(where.directory(), kConnections, [&](const UniqueFd& connection, Line& parent) {
      receive_once(connection, kHello.size());
      send_in_buffers(connection, chosen);
      std::string before = flight;
      for (const std::string& piece : beginning.pieces) {
        receive_once(connection, before.size() + piece.size());
        send_in_buffers(connection, before.empty() ? beginning.answer : tickets);
        before.clear();
      }
      parent.tell();
      (void)parent.hear();
    });
    const auto port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd client = connect_tcp(port);
      send_bytes(client, kHello);
      receive_once(client, chosen.size());
      std::string before = flight;
      for (const std::string& piece : beginning.pieces) {
        send_bytes(client, before + piece);
        receive_once(client, before.empty() ? beginning.answer.size() : tickets.size());
        before.clear();
      }
      (void)server.hear();
      server.tell();
    }
    server.finish();
    CHECK(where.value("tacho_multiplexed_connections_total") == (beginning.told ? kConnections : 0));
    CHECK(where.value("tacho_requests_in_flight") == 0);
    // Whatever is answered counts, but for an acknowledgement alone.
    CHECK(where.value("tacho_requests_total") == kConnections * beginning.requests);
  }
}
