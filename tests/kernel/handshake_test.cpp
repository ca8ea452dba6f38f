// What of a TLS connection is a request and what is only its handshake, told by nothing but the types of records.

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::string_literals;

namespace {

constexpr int kConnections = 11;

/// A record of TLS: type, version 1.2, length and body (RFC 8446, 5.1).
std::string record(char type, const std::string& body) {
  return ""s + type + '\3' + '\3' + static_cast<char>(body.size() >> 8U) + static_cast<char>(body.size() & 0xffU) +
         body;
}

const std::string kHello = record(22, std::string(300, 'h'));
const std::string kChangeCipherSpec = record(20, "\1");
const std::string kFinished = record(23, std::string(53, 'f'));
const std::string kRequest = record(23, std::string(120, 'q'));

/// What the client sends until the server answers; the server reads it in these pieces.
using Flight = std::vector<std::string>;

struct Conversation {
  std::string name;
  std::vector<Flight> flights;
  int handshakes;  ///< of its turns
};

const std::vector<Conversation>& conversations() {
  // GnuTLS reads head and body of a record apart; a body is as random as encryption makes it.
  static const std::string unlucky_body = "\x16\x03"s + std::string(51, 'f');
  static const std::string unlucky = record(23, unlucky_body);
  static const std::vector<Conversation> all = {
      {"TLS 1.3", {{kHello}, {kChangeCipherSpec + kFinished}, {kRequest}, {kRequest}}, 2},
      {"TLS 1.3, the last flight read in pieces", {{kHello}, {kChangeCipherSpec, kFinished}, {kRequest}}, 2},
      {"TLS 1.3, the last flight is not answered", {{kHello}, {kChangeCipherSpec, kFinished, kRequest}, {kRequest}}, 1},
      {"TLS 1.3, a body that looks like a handshake",
       {{kHello}, {kChangeCipherSpec, unlucky.substr(0, 5), unlucky_body, kRequest}, {kRequest}},
       1},
      {"TLS 1.3, another hello is asked for", {{kHello}, {kChangeCipherSpec, kHello}, {kFinished}, {kRequest}}, 3},
      {"TLS 1.2", {{kHello}, {kHello + kChangeCipherSpec + kFinished}, {kRequest}}, 2},
      {"a plain exchange before TLS", {{"please"}, {kHello}, {kChangeCipherSpec + kFinished}, {kRequest}}, 2},
      {"no TLS", {{"\x17\x03\x03"}, {"\x14\x03\x03"}}, 0},
  };
  return all;
}

void answer(const UniqueFd& connection, const Conversation& conversation) {
  for (const Flight& flight : conversation.flights) {
    for (const std::string& piece : flight) {
      receive_once(connection, piece.size());
    }
    send_once(connection, 100);
  }
}

std::string together(const Flight& flight) {
  std::string all;
  for (const std::string& piece : flight) {
    all += piece;
  }
  return all;
}

}  // namespace

TEST_CASE("the turns of a TLS handshake are no requests, all others are") {
  for (const Conversation& conversation : conversations()) {
    CAPTURE(conversation.name);
    const Watched where;
    Child server(where.directory(), [&conversation](Line& parent) {
      const UniqueFd listener = listen_tcp();
      parent.tell(port_of(listener));
      for (int i = 0; i < kConnections; ++i) {
        answer(accept_from(listener), conversation);
      }
      parent.tell();
      (void)parent.hear();
    });
    const auto port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd client = connect_tcp(port);
      for (const Flight& flight : conversation.flights) {
        const std::string data = together(flight);
        REQUIRE(::send(client.get(), data.data(), data.size(), 0) == static_cast<ssize_t>(data.size()));
        receive_once(client, 100);
      }
    }
    (void)server.hear();
    const int turns = static_cast<int>(conversation.flights.size());
    CHECK(where.value("tacho_requests_total") == kConnections * (turns - conversation.handshakes));
    CHECK(where.value("tacho_handshakes_total") == kConnections * conversation.handshakes);
    server.tell();
    server.finish();
  }
}

TEST_CASE("what a client's handshakes take to and fro are no calls, all others are") {
  const std::string ticket = record(22, std::string(180, 't'));
  const std::string answer = record(23, std::string(90, 'a'));
  // The flights of the server, and how many of them are answers to calls.
  const std::vector<std::pair<std::vector<std::string>, int>> cases = {
      {{kHello, answer, answer}, 2},                                          // TLS 1.3, and 1.2 resumed
      {{kHello, kChangeCipherSpec + kFinished, answer}, 1},                   // TLS 1.2
      {{kHello, ticket + kChangeCipherSpec + kFinished, answer}, 1},          // TLS 1.2 with a session ticket
      {{"yes", kHello, kChangeCipherSpec + kFinished, answer}, 2},            // a plain exchange before it
      {{kHello, kHello + kChangeCipherSpec + kFinished, answer}, 1},          // TLS 1.3, another hello was asked for
      {{kChangeCipherSpec, answer, "\x17\x03\x03", std::string(4, 'x')}, 4},  // no TLS
  };
  for (const auto& [flights, calls] : cases) {
    const Watched where;
    const UniqueFd listener = listen_tcp();
    const auto port = port_of(listener);
    Child client(where.directory(), [&flights, port](Line& parent) {
      const UniqueFd connection = connect_tcp(port);
      for (const std::string& flight : flights) {
        send_once(connection, 100);
        receive_once(connection, flight.size());
      }
      parent.tell();
      (void)parent.hear();
    });
    const UniqueFd server = accept_from(listener);
    for (const std::string& flight : flights) {
      receive_once(server, 100);
      REQUIRE(::send(server.get(), flight.data(), flight.size(), 0) == static_cast<ssize_t>(flight.size()));
    }
    (void)client.hear();
    const std::string peer = "127.0.0.1:" + std::to_string(port);
    CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer}}) == calls);
    CHECK(where.value("tacho_handshakes_total") == 0);
    client.tell();
    client.finish();
  }
}
