// What of a TLS connection is a call of a client, and what is its handshake or its goodbye.

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

/// What the client sends, piece by piece, before it reads what the server sends.
using Flights = std::vector<std::pair<std::vector<std::string>, std::string>>;

/// Of a client that lives them, and sends from so many buffers: how many are calls. None of it is a request of its own.
void check_calls_sent(const Flights& flights, int calls, bool in_buffers) {
  CAPTURE(in_buffers);
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  Child client(where.directory(), [&flights, port, in_buffers](Line& parent) {
    const UniqueFd connection = connect_tcp(port);
    for (const auto& [pieces, reply] : flights) {
      for (const std::string& piece : pieces) {
        if (in_buffers) {
          send_parts(connection, {std::string_view(piece).substr(0, 5), "", std::string_view(piece).substr(5)});
        } else {
          send_bytes(connection, piece);
        }
      }
      receive_once(connection, reply.size());
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd server = accept_from(listener);
  for (const auto& [pieces, reply] : flights) {
    if (!pieces.empty()) {
      receive_once(server, std::accumulate(pieces.begin(), pieces.end(), std::string()).size());
    }
    send_bytes(server, reply);
  }
  (void)client.hear();
  const std::string peer = "127.0.0.1:" + std::to_string(port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer}}) == calls);
  CHECK(where.value("tacho_handshakes_total") == 0);
  client.tell();
  client.finish();
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "client"}}) == 0; }));
  CHECK(where.observations("tacho_request_reply_seconds") == 0);
}

void check_calls(const Flights& flights, int calls) {
  check_calls_sent(flights, calls, false);
  check_calls_sent(flights, calls, true);
}

}  // namespace

TEST_CASE("what a client asks right behind its part of a handshake of TLS 1.2 is a call") {
  const std::string answer = record(23, std::string(90, 'a'));
  const std::string asks = kKeyExchange + kChangeCipherSpec + kFinished12 + kRequest;
  check_calls({{{kHello}, kServerHello},
               {{asks}, kTicket12 + kChangeCipherSpec + kFinished12},
               {{}, answer},
               {{kRequest}, answer}},
              2);
  check_calls({{{kHello}, kServerHello}, {{asks}, kChangeCipherSpec + kFinished12 + answer}, {{kRequest}, answer}}, 2);
}

TEST_CASE("what a client's handshakes take to and fro are no calls, all others are") {
  const std::string ticket = record(22, std::string(180, 't'));
  const std::string answer = record(23, std::string(90, 'a'));
  const std::string refused = record(21, "\2\50");
  // The flights of the server, and how many of them are answers to calls.
  const std::vector<std::pair<std::vector<std::string>, int>> cases = {
      {{kHello, answer, answer}, 2},                                          // TLS 1.3, and 1.2 resumed
      {{kHello, kChangeCipherSpec + kFinished, answer}, 1},                   // TLS 1.2
      {{kHello, ticket + kChangeCipherSpec + kFinished, answer}, 1},          // TLS 1.2 with a session ticket
      {{"yes", kHello, kChangeCipherSpec + kFinished, answer}, 2},            // a plain exchange before it
      {{kHello, kHello + kChangeCipherSpec + kFinished, answer}, 1},          // TLS 1.3, another hello was asked for
      {{kChangeCipherSpec, answer, "\x17\x03\x03", std::string(4, 'x')}, 4},  // no TLS
      {{refused}, 0},                                                         // the hello is refused,
      {{kHello, refused}, 0},                                                 // or the client's certificate
      {{kHello, kChangeCipherSpec + kFinished, answer, kAlert}, 1},           // a goodbye, and no answer
  };
  for (const auto& [replies, calls] : cases) {
    Flights flights;
    for (const std::string& reply : replies) {
      flights.push_back({{std::string(100, 'x')}, reply});
    }
    check_calls(flights, calls);
  }
}

TEST_CASE("what a server sends when a client's last flight has come is no answer to a call") {
  const std::string ticket = record(23, std::string(250, 't'));
  const std::string answer = record(23, std::string(90, 'a'));
  const std::vector<std::pair<Flights, int>> cases = {
      {{{{kHello}, kHello}, {{kChangeCipherSpec + kFinished}, ticket}, {{kRequest}, answer}}, 1},
      {{{{kHello}, kHello}, {{kChangeCipherSpec, kFinished}, ticket}, {{kRequest}, answer}}, 1},
      {{{{kHello}, kHello}, {{kLongFinished}, ticket + ticket}, {{kFinished}, answer}, {{kFinished}, answer}}, 2},
      {{{{kHello}, kHello}, {{kCertificate + kVerify + kFinished}, ticket}, {{kRequest}, answer}}, 1},
      {{{{kHello}, kHello}, {{kFinished, kFinished}, answer}, {{kRequest}, answer}}, 2},
      {{{{kHello}, kHello}, {{kFinished + kRequest}, ticket + answer}, {{kRequest}, answer}}, 2},
      {{{{kHello}, kHello}, {{kFinished}, ticket}, {{kShort}, kShort}}, 0},
      // Another hello is asked for.
      {{{{kHello}, kServerHello}, {{kHello}, kServerHello + kRequest}, {{kFinished}, ticket}, {{kRequest}, answer}}, 1},
      {{{{kHello}, kHello}, {{kChangeCipherSpec, kPaddedFinished}, ticket}, {{kRequest}, answer}}, 1},
      // TLS 1.2: with the keys exchanged, and a session that is resumed.
      {{{{kHello}, kHello},
        {{kKeyExchange, kChangeCipherSpec, kFinished12}, kChangeCipherSpec + kFinished12},
        {{kRequest}, answer}},
       1},
      {{{{kHello}, kHello + kChangeCipherSpec + kFinished12}, {{kChangeCipherSpec + kFinished12, kRequest}, answer}},
       1},
  };
  // With a certificate, in any pieces, or without the one that was asked for; and a session that is resumed, in any
  // pieces.
  const std::string last = kChangeCipherSpec + kFinished12;
  const Flights ends = {{{}, record(23, std::string(60, 'g'))}, {{kRequest}, answer}};
  for (const std::vector<std::string>& pieces :
       std::vector<std::vector<std::string>>{{kCertificate12 + kKeyExchange + kVerify12 + last},
                                             {kCertificate12, kKeyExchange + kVerify12, kChangeCipherSpec, kFinished12},
                                             {kNoCertificate12 + kKeyExchange + last}}) {
    Flights flights = {{{kHello}, kHello}, {pieces, last}};
    flights.insert(flights.end(), ends.begin(), ends.end());
    CAPTURE(pieces);
    check_calls(flights, 1);
  }
  for (const std::vector<std::string>& pieces : std::vector<std::vector<std::string>>{
           {last}, {kChangeCipherSpec, kFinished12}, {kChangeCipherSpec + record(22, std::string(96, 'f'))}}) {
    CAPTURE(pieces);
    check_calls({{{kHello}, kServerHello + last}, {pieces, ends[0].second}, ends[1]}, 1);
    check_calls({{{kHello}, kServerHello + last}, {pieces, ends[0].second}, {{kAlert}, kAlert}}, 0);
  }
  for (const auto& [flights, calls] : cases) {
    check_calls(flights, calls);
  }
}

TEST_CASE("a first call under TLS 1.2 is one, also if it is as long as Finished under TLS 1.3, or as Java's goodbye") {
  const std::string answer = record(23, std::string(90, 'a'));
  const std::string last = kChangeCipherSpec + kFinished12;
  for (const std::size_t length : {35U, 45U, 53U, 69U, 85U}) {
    CAPTURE(length);
    const std::pair<std::vector<std::string>, std::string> call{{record(23, std::string(length, 'q'))}, answer};
    check_calls({{{kHello}, kServerHello}, {{kKeyExchange + last}, last}, call, {{kRequest}, answer}}, 2);
    check_calls({{{kHello}, kServerHello}, {{kKeyExchange, last}, kTicket12 + last}, call, {{kRequest}, answer}}, 2);
  }
}

TEST_CASE("a call within which a client's certificate is asked for is one") {
  using Pieces = std::vector<std::string>;
  const std::string answer = record(23, std::string(90, 'a'));
  const std::string again = record(22, std::string(28, 'r'));
  const std::string flight = record(22, std::string(2000, 'f'));
  const std::string last = kChangeCipherSpec + kFinished12;
  const std::string question = record(23, std::string(250, '?'));
  const std::string ticket = record(23, std::string(250, 't'));
  struct Case {
    Flights handshake;
    Flights flights;
    int calls;
  };
  const Flights old = {{{kHello}, kHello}, {{kKeyExchange, kChangeCipherSpec, kFinished12}, last}};
  const Flights modern = {{{kHello}, kHello}, {{kFinished}, ticket}};
  const std::pair<Pieces, std::string> call{{kRequest}, answer};
  const std::pair<Pieces, std::string> interrupted{{kRequest}, again};
  const std::pair<Pieces, std::string> hello{{kHello}, flight};
  const std::pair<Pieces, std::string> keys{{kKeyExchange + last}, last};
  const std::pair<Pieces, std::string> late{{}, answer};
  const std::vector<Case> cases = {
      // TLS 1.2: the first call, a later one, one whose answer shares a read with the end of the handshake.
      {old, {interrupted, hello, keys, late, call}, 2},
      {old, {call, interrupted, hello, keys, late}, 2},
      {old, {interrupted, hello, {{kKeyExchange + last}, last + answer}, call}, 2},
      // The client goes on sending the call behind the second handshake.
      {old, {interrupted, hello, keys, call}, 1},
      // A call behind the client's last flight, before the server's.
      {{{{kHello}, kHello}}, {{{kKeyExchange + last, kRequest}, last}, late, call}, 2},
      // TLS 1.3: with a certificate, without one, in pieces; and what is not quite such a flight.
      {modern, {{{kRequest}, question}, {{kCertificate + kVerify + kFinished}, ticket}, late, call}, 2},
      {modern, {{{kRequest}, question}, {{kNoProof + kLongFinished}, answer}, call}, 2},
      {modern, {{{kRequest}, question}, {{kCertificate, kVerify, kFinished}, answer}, call}, 2},
      {modern, {call, {{kCertificate + kVerify + kRequest}, answer}}, 2},
      {modern, {call, {{kRequest + kFinished}, answer}, {{kFinished}, answer}}, 3},
  };
  for (const Case& c : cases) {
    Flights all = c.handshake;
    all.insert(all.end(), c.flights.begin(), c.flights.end());
    check_calls(all, c.calls);
  }
}

TEST_CASE("the goodbye of a client that is answered by one is no call") {
  const std::string answer = record(23, std::string(90, 'a'));
  const std::vector<std::pair<Flights, int>> cases = {
      {{{{kHello}, kHello}, {{kRequest}, answer}, {{kShort}, kShort}}, 1},                      // TLS 1.3
      {{{{kHello}, kHello}, {{kRequest}, answer}, {{kAlert}, kAlert}}, 1},                      // TLS 1.2
      {{{{kHello}, kHello}, {{kShort}, kShort}, {{kShort}, kShort}, {{kRequest}, answer}}, 3},  // short calls
      {{{{kHello}, kHello}, {{kShort}, answer + kShort}}, 0},                        // tickets were not read yet
      {{{{kHello}, kHello}, {{kRequest}, answer}, {{kAlert}, answer + kAlert}}, 1},  // the rest of a reply
      {{{{kHello}, kHello}, {{kShort}, answer}, {{kRequest}, answer}}, 2},           // a short call, a long answer
      // Java's, which are longer: two at once, one and the other's, before tickets were read; and calls as long.
      {{{{kHello}, kHello}, {{kRequest}, answer}, {{kPadded, kPadded}, kShort}}, 1},
      {{{{kHello}, kHello}, {{kRequest}, answer}, {{kPadded}, kShort}}, 1},
      {{{{kHello}, kHello}, {{kRequest}, answer}, {{kPadded}, kPadded}}, 1},
      {{{{kHello}, kHello}, {{kPadded, kPadded}, answer + kShort}}, 0},
      {{{{kHello}, kHello}, {{kRequest}, answer}, {{kPadded}, answer}}, 2},
      {{{{kHello}, kHello}, {{kPadded}, kShort}, {{kPadded}, kPadded}, {{kRequest}, answer}}, 3},
  };
  for (const auto& [flights, calls] : cases) {
    check_calls(flights, calls);
  }
}

TEST_CASE("session tickets that are unread when a client asks, late in its connection, are no answers") {
  constexpr int kConnections = 5;
  constexpr int kBefore = 3;
  const std::string ticket = record(23, std::string(250, 't'));
  const std::string answer = record(23, std::string(90, 'a'));
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  Child client(where.directory(), [&, port](Line& parent) {
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = connect_tcp(port);
      ask(connection, kBefore, 10, 10);
      send_bytes(connection, kHello);
      receive_once(connection, kHello.size());
      send_bytes(connection, kChangeCipherSpec + kFinished);
      (void)parent.hear();
      send_bytes(connection, kRequest);
      receive_once(connection, ticket.size() + answer.size());
      ask(connection, 1, 10, 10);
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd server = accept_from(listener);
    serve(server, kBefore, 10, 10);
    receive_once(server, kHello.size());
    send_bytes(server, kHello);
    receive_once(server, (kChangeCipherSpec + kFinished).size());
    send_bytes(server, ticket);
    // For longer than the hook of a send may be late.
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    client.tell();
    receive_once(server, kRequest.size());
    send_bytes(server, answer);
    serve(server, 1, 10, 10);
  }
  (void)client.hear();
  const double sends = where.sends();
  REQUIRE(shared().wait_for([&] { return where.value("tacho_observed_rps") > 0 && where.sends() == sends; }));
  CHECK(where.value("tacho_target_condition", {{"condition", "multiplexed_calls"}}) == 0);
  client.tell();
  client.finish();
}

TEST_CASE("a first call ends with session tickets that are still unread, unless they are read at once") {
  const bool at_once = GENERATE(true, false);
  CAPTURE(at_once);
  constexpr int kConnections = 5;
  constexpr std::chrono::milliseconds kWork{40};
  const std::string ticket = record(23, std::string(250, 't'));
  const std::string answer = record(23, std::string(90, 'a'));
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  Child client(where.directory(), [&, port](Line& parent) {
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = connect_tcp(port);
      send_bytes(connection, kHello);
      receive_once(connection, kHello.size());
      send_bytes(connection, kChangeCipherSpec + kFinished);
      send_bytes(connection, kRequest);
      for (const std::size_t size :
           at_once ? std::vector{2 * ticket.size()} : std::vector{5UL, 2 * ticket.size() - 5}) {
        receive_once(connection, size);
      }
      receive_once(connection, answer.size());
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd server = accept_from(listener);
    receive_once(server, kHello.size());
    send_bytes(server, kHello);
    receive_once(server, (kChangeCipherSpec + kFinished).size());
    receive_once(server, kRequest.size());
    send_bytes(server, ticket + ticket);
    std::this_thread::sleep_for(kWork);
    send_bytes(server, answer);
  }
  (void)client.hear();
  const std::string peer = "127.0.0.1:" + std::to_string(port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer}}) == kConnections);
  const double worked = kConnections * std::chrono::duration<double>(kWork).count();
  CHECK((where.sum("tacho_dependency_duration_seconds") >= worked) == at_once);
  client.tell();
  client.finish();
}
