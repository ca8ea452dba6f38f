// HTTP's interim responses: what answers "Expect: 100-continue" is no reply, and no answer of a call.

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kUploads = 11;
/// Longer than the pause that ends a turn without a reply.
constexpr auto kPause = 700ms;

const std::string kHead = "PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\nExpect: 100-continue\r\n\r\n";
const std::string kBody(40, 'b');
const std::string kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
const std::string kReply = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";

/// What the client sends and the server answers, one after the other. The server reads so many bytes by themselves
/// first, and sends some by themselves before it answers.
struct Exchange {
  std::string asks;
  std::string answer;
  std::size_t header = 0;
  std::vector<std::string> before = {};
};

/// What is said on a connection, so many times; how many of it are requests.
struct Upload {
  std::string name;
  std::vector<Exchange> exchanges;
  int requests;
  std::chrono::milliseconds pause = 0ms;  ///< before each but the first
};

std::vector<Upload> uploads() {
  return {
      {"a head, then a body", {{kHead, kContinue}, {kBody, kReply}}, 1},
      {"without a reason", {{kHead, "HTTP/1.1 100 \r\n\r\n"}, {kBody, kReply}}, 1},
      {"it takes its time", {{kHead, "HTTP/1.1 102 Processing\r\n\r\n"}, {kBody, kReply}}, 1},
      {"the body comes late", {{kHead, kContinue}, {kBody, kReply}}, 1, kPause},
      {"a body in two pieces", {{kHead, kContinue}, {kBody.substr(0, 20), kContinue}, {kBody.substr(20), kReply}}, 1},
      {"refused", {{kHead, "HTTP/1.1 417 Expectation\r\n\r\n"}, {kHead, kReply}}, 2},
      {"another protocol is switched to", {{kHead, "HTTP/1.1 101 Switching\r\n\r\n"}, {kBody, kReply}}, 2},
      {"the reply in the same send", {{kHead, kContinue + "HTTP/1.1 204 \r\n\r\n"}, {kHead, kReply}}, 2},
      {"a reply that is as long", {{kHead, std::string(kContinue.size(), 'r')}, {kBody, kReply}}, 2},
  };
}

/// A ClientHello with these protocols in its ALPN extension (RFC 7301, 3.1).
std::string hello_with(const std::string& protocols) {
  const auto length = static_cast<char>(protocols.size());
  return record(22, message(1, std::string(150, 'h') + std::string("\0\x10\0", 3) + static_cast<char>(length + 2) +
                                   '\0' + length + protocols + std::string(100, 'h')));
}

const std::string kOffersHttp = "\x02h2\x08http/1.1";

std::string of_length(std::size_t bytes) {
  return record(23, std::string(bytes, 'c'));
}

/// "HTTP/1.1 100 Continue" under TLS 1.3.
const std::string kContinue13 = of_length(kContinue.size() + 17);

/// Lives it so many times on one connection.
void live(const Upload& upload, int times) {
  CAPTURE(upload.name);
  const Watched where;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line&) {
    for (int i = 0; i < times; ++i) {
      for (const Exchange& exchange : upload.exchanges) {
        if (exchange.header > 0) {
          receive_once(connection, exchange.header);
        }
        receive_once(connection, exchange.asks.size() - exchange.header);
        for (const std::string& before : exchange.before) {
          send_bytes(connection, before);
        }
        send_bytes(connection, exchange.answer);
      }
    }
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < times; ++i) {
    for (const Exchange& exchange : upload.exchanges) {
      if (&exchange != &upload.exchanges.front()) {
        std::this_thread::sleep_for(upload.pause);
      }
      send_bytes(client, exchange.asks);
      for (const std::string& before : exchange.before) {
        receive_once(client, before.size());
      }
      receive_once(client, exchange.answer.size());
    }
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == times * upload.requests);
  CHECK(where.value("tacho_oneway_messages_total") == 0);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  CHECK(where.sum("tacho_request_duration_seconds") < std::chrono::duration<double>(kPause).count() / 2);
  CHECK(where.value("tacho_multiplexed_connections_total") == 0);
  close_connection(server);
  finish(server);
}

/// Turns of a connection that begins with a handshake of two turns.
std::vector<Upload> uploads_under_tls() {
  const std::string hello = hello_with(kOffersHttp);
  const std::string flight = kChangeCipherSpec + kFinished;
  const std::string flight12 = kKeyExchange + kChangeCipherSpec + kFinished12;
  const Exchange asks{kRequest, kContinue13};
  const Exchange sends{kRequest, kRequest};
  const std::string message = record(23, std::string(46, 'm'));
  const std::string ticket = of_length(282);
  return {
      {"TLS 1.3", {{hello, kServerHello + kRequest}, {flight, kRequest}, asks, sends, asks, sends}, 2},
      {"headers are read by themselves",
       {{hello, kServerHello + kRequest, 5}, {flight, kRequest}, {kRequest, kContinue13, 5}, sends},
       1},
      {"it comes with the handshake's end, and the body late",
       {{hello, kServerHello + kRequest}, {flight + kRequest, kContinue13}, sends},
       1,
       kPause},
      {"it comes with the handshake's end",
       {{hello, kServerHello + kRequest}, {flight + kRequest, kContinue13}, sends},
       1},
      {"it comes with the handshake's end, and each ticket by itself",
       {{hello, kServerHello + kRequest}, {flight + kRequest, kContinue13, 0, {ticket, ticket}}, sends, asks, sends},
       2},
      {"the same with one ticket",
       {{hello, kServerHello + kRequest}, {flight + kRequest, kContinue13, 0, {ticket}}, sends, asks, sends},
       2},
      {"the body comes late", {{hello, kServerHello + kRequest}, {flight, kRequest}, asks, sends}, 1, kPause},
      {"TLS 1.2, AES-GCM",
       {{hello, kServerHello}, {flight12, kChangeCipherSpec + kFinished12}, {kRequest, of_length(49)}, sends},
       1},
      {"TLS 1.2, ChaCha20-Poly1305",
       {{hello, kServerHello}, {flight12, kChangeCipherSpec + kFinished12}, {kRequest, of_length(41)}, sends},
       1},
      {"a reply that is two bytes longer (204)",
       {{hello, kServerHello + kRequest}, {flight, kRequest}, {kRequest, of_length(44)}, sends},
       2},
      {"answers to short messages (WebSocket)",
       {{hello, kServerHello + kRequest}, {flight, kRequest}, sends, {message, kContinue13}, {message, kContinue13}},
       3},
      {"answers to longer messages (WebSocket)",
       {{hello, kServerHello + kRequest}, {flight, kRequest}, sends, {of_length(75), kContinue13}, {message, kRequest}},
       2},
      {"the same in a row (WebSocket): the first is lost",
       {{hello, kServerHello + kRequest},
        {flight, kRequest},
        {of_length(75), kContinue13},
        {of_length(75), kContinue13},
        {of_length(75), kContinue13},
        {of_length(75), kContinue13}},
       3},
      {"the kernel has the keys (kTLS)",
       {{hello, kServerHello + kRequest}, {flight, kRequest}, {kHead, kContinue}, {kBody, kReply}},
       1},
      {"a padded record", {{hello, kServerHello + kRequest}, {flight, kRequest}, {kRequest, of_length(58)}, sends}, 2},
      {"a client that offers nothing", {{kHello, kServerHello + kRequest}, {flight, kRequest}, asks, sends}, 2},
      {"a client that offers something else",
       {{hello_with("\x0apostgresql"), kServerHello + kRequest}, {flight, kRequest}, asks, sends},
       2},
  };
}

}  // namespace

TEST_CASE("an interim response of HTTP is no reply, however long the rest of the request takes") {
  for (const Upload& upload : uploads()) {
    live(upload, upload.pause > 0ms ? 1 : kUploads);
  }
}

TEST_CASE("under TLS an interim response is told by its length, where the client offers HTTP/1.1") {
  for (const Upload& upload : uploads_under_tls()) {
    live(upload, 1);
  }
}

TEST_CASE("an interim response of HTTP with fields looks like any reply") {
  const std::string interim = "HTTP/1.1 100 Continue\r\nServer: a\r\n\r\n";
  live({"100", {{kHead, interim}, {kBody, kReply}}, 2}, kUploads);
  const std::string hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
  live({"103, and the reply behind it", {{kHead, hints + kReply}, {kHead, kReply}}, 2}, kUploads);
}

TEST_CASE("an interim response of HTTP ends no call") {
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  Child client(where.directory(), [port](Line& parent) {
    const UniqueFd connection = connect_tcp(port);
    for (int i = 0; i < kUploads; ++i) {
      send_bytes(connection, kHead);
      receive_once(connection, kContinue.size());
      send_bytes(connection, kBody);
      receive_once(connection, kReply.size());
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd server = accept_from(listener);
  for (int i = 0; i < kUploads; ++i) {
    receive_once(server, kHead.size());
    send_bytes(server, kContinue);
    receive_once(server, kBody.size());
    send_bytes(server, kReply);
  }
  (void)client.hear();
  const std::string peer = "127.0.0.1:" + std::to_string(port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer}}) == kUploads);
  CHECK(where.value("tacho_target_condition", {{"condition", "multiplexed_calls"}}) == 0);
  client.tell();
  client.finish();
}

namespace {

/// A handshake as a client sees it, whose part of it comes in two flights.
struct Handshake {
  std::string name;
  std::string hello_answer;
  std::string flight;
  std::string flight_answer;  ///< or nothing
  std::string interim;
  std::vector<std::string> tickets = {};  ///< each sent by itself, when the first request is there
};

void upload_by(const Handshake& handshake) {
  CAPTURE(handshake.name);
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  const std::string hello = hello_with(kOffersHttp);
  Child client(where.directory(), [&](Line& parent) {
    const UniqueFd connection = connect_tcp(port);
    // OpenSSL reads the header of each record by itself.
    const auto reads = [&](const std::string& record) {
      receive_once(connection, 5);
      receive_once(connection, record.size() - 5);
    };
    send_bytes(connection, hello);
    reads(handshake.hello_answer);
    send_bytes(connection, handshake.flight);
    if (!handshake.flight_answer.empty()) {
      reads(handshake.flight_answer);
    }
    for (int i = 0; i < kUploads; ++i) {
      send_bytes(connection, kRequest);
      for (std::size_t ticket = 0; i == 0 && ticket < handshake.tickets.size(); ++ticket) {
        reads(handshake.tickets[ticket]);
      }
      reads(handshake.interim);
      send_bytes(connection, kRequest);
      reads(kRequest);
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd server = accept_from(listener);
  receive_once(server, hello.size());
  send_bytes(server, handshake.hello_answer);
  receive_once(server, handshake.flight.size());
  send_bytes(server, handshake.flight_answer);
  for (int i = 0; i < kUploads; ++i) {
    receive_once(server, kRequest.size());
    for (std::size_t ticket = 0; i == 0 && ticket < handshake.tickets.size(); ++ticket) {
      send_bytes(server, handshake.tickets[ticket]);
    }
    send_bytes(server, handshake.interim);
    receive_once(server, kRequest.size());
    send_bytes(server, kRequest);
  }
  (void)client.hear();
  const std::string peer = "127.0.0.1:" + std::to_string(port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer}}) == kUploads);
  client.tell();
  client.finish();
}

}  // namespace

TEST_CASE("under TLS an interim response of HTTP ends no call") {
  const std::string flight = kChangeCipherSpec + kFinished, ticket = of_length(282);
  upload_by({"TLS 1.3", kServerHello, flight, "", kContinue13});
  upload_by({"TLS 1.3, tickets", kServerHello, flight, "", kContinue13, {ticket, ticket}});
  upload_by({"TLS 1.2", kServerHello, kKeyExchange + kChangeCipherSpec + kFinished12, kFinished12, of_length(49)});
}
