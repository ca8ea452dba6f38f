// Connections of HTTP/2 under TLS: which handshakes tell of them, and what of them is in flight.

#include <catch2/catch.hpp>
#include <chrono>
#include <string>
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

constexpr int kConnections = 7;
const std::string kServerHello = record(22, std::string(122, 's')) + kChangeCipherSpec;
/// With X25519MLKEM768.
const std::string kLongServerHello = record(22, std::string(1210, 's')) + kChangeCipherSpec;
const std::string kFlight = kChangeCipherSpec + kLongFinished;

/// EncryptedExtensions in a record of its own (of so many bytes), then certificate and Finished.
std::string by_messages(std::size_t extensions, const std::string& hello = kServerHello) {
  return hello + record(23, std::string(extensions, 'e')) + record(23, std::string(900, 'c')) + kLongFinished;
}

/// A ServerHello of TLS 1.2 that ends with this choice.
std::string by_tls12(const std::string& choice, const std::string& begin = std::string(70, 's')) {
  const auto size = static_cast<char>(choice.size());
  return record(22, begin + std::string("\0\x10\0", 3) + static_cast<char>(size + 3) + '\0' +
                        static_cast<char>(size + 1) + size + choice);
}

/// The beginning of one that chooses ChaCha20 (RFC 7905), behind a session's 32 bytes.
const std::string kChaCha20 = std::string(38, 's') + '\x20' + std::string(32, 'i') + "\xcc\xa8";

/// A server's answer to the hello, and to the client's last flight.
struct Handshake {
  std::string name;
  std::string chosen;
  std::string asked;
  bool told;
};

const std::vector<Handshake>& handshakes() {
  static const std::string keys = kKeyExchange + kChangeCipherSpec + kFinished12;
  static const std::vector<Handshake> all = {
      {"TLS 1.3, HTTP/2", by_messages(32), kFlight, true},
      {"TLS 1.3, HTTP/2 and the server's name", by_messages(36), kFlight, true},
      {"TLS 1.3, HTTP/1.1", by_messages(38), kFlight, false},
      {"TLS 1.3, PostgreSQL 17", by_messages(40), kFlight, false},
      {"TLS 1.3, nothing is chosen", by_messages(23), kFlight, false},
      {"TLS 1.3, all messages in one record, as BoringSSL and rustls write them",
       kServerHello + record(23, std::string(1001, 'a')), kFlight, false},
      {"TLS 1.2, HTTP/2", by_tls12("h2"), keys, true},
      {"TLS 1.2, HTTP/1.1", by_tls12("http/1.1"), keys, false},
      {"TLS 1.3, HTTP/2, a key share that withstands quantum computers", by_messages(32, kLongServerHello), kFlight,
       true},
      {"TLS 1.3, HTTP/1.1, such a key share", by_messages(38, kLongServerHello), kFlight, false},
  };
  return all;
}

void shake_hands(const UniqueFd& connection, const Handshake& handshake) {
  receive_once(connection, kHello.size());
  send_in_buffers(connection, handshake.chosen, 100);
  receive_once(connection, handshake.asked.size());
  send_bytes(connection, kShort);
}

void greet(const UniqueFd& client, const Handshake& handshake) {
  send_bytes(client, kHello);
  receive_once(client, handshake.chosen.size());
  send_bytes(client, handshake.asked);
  receive_once(client, kShort.size());
}

void ask_once(const UniqueFd& client, const std::string& request) {
  send_bytes(client, request);
  receive_once(client, 100);
}

void answer(const UniqueFd& connection, std::size_t request) {
  receive_once(connection, request);
  send_once(connection, 100);
}

}  // namespace

TEST_CASE("HTTP/2 under TLS is told by the choice in a record of its own, or in the clear, and by nothing else") {
  for (const Handshake& handshake : handshakes()) {
    CAPTURE(handshake.name);
    const Watched where;
    Child server(where.directory(), [&handshake](Line& parent) {
      const UniqueFd listener = listen_tcp();
      parent.tell(port_of(listener));
      for (int i = 0; i < kConnections; ++i) {
        const UniqueFd connection = accept_from(listener);
        shake_hands(connection, handshake);
        answer(connection, kRequest.size());
        parent.tell();
      }
    });
    const auto port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd client = connect_tcp(port);
      greet(client, handshake);
      ask_once(client, kRequest);
      (void)server.hear();
    }
    server.finish();
    CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
    CHECK(where.value("tacho_multiplexed_connections_total") == (handshake.told ? kConnections : 0));
  }
}

TEST_CASE("HTTP/2 under TLS that no handshake tells of is told by requests that overlap") {
  const Handshake& handshake = handshakes()[5];
  const bool overlap = GENERATE(false, true);
  CAPTURE(overlap);
  const Watched where;
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = accept_from(listener);
      shake_hands(connection, handshake);
      for (int request = 0; request < 2; ++request) {
        receive_once(connection, kRequest.size());
        parent.tell();
        (void)parent.hear();
        send_once(connection, 100);
      }
      parent.tell();
    }
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd client = connect_tcp(port);
    greet(client, handshake);
    // The second request arrives while the server works on the first, or after its reply.
    send_bytes(client, kRequest);
    (void)server.hear();
    if (overlap) {
      send_bytes(client, kRequest);
    }
    server.tell();
    receive_once(client, 100);
    if (!overlap) {
      send_bytes(client, kRequest);
    }
    (void)server.hear();
    server.tell();
    receive_once(client, 100);
    (void)server.hear();
  }
  server.finish();
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
  CHECK(where.value("tacho_multiplexed_connections_total") == (overlap ? kConnections : 0));
}

TEST_CASE("over HTTP/2 under TLS what is as short as a ping is in flight for seconds only, until it is answered") {
  // With the record's header, 48 bytes; and one byte more.
  const std::string control = record(23, std::string(43, 'p'));
  const std::string longer = record(23, std::string(44, 'p'));
  const Watched short_ones;
  const Watched long_ones;
  const auto serve_one_late = [](std::size_t size) {
    return [size](const UniqueFd& connection, Line& parent) {
      shake_hands(connection, handshakes()[0]);
      answer(connection, kRequest.size());
      receive_once(connection, size);
      parent.tell();
      (void)parent.hear();
      send_once(connection, 100);
    };
  };
  Child short_server = server_that(short_ones.directory(), serve_one_late(control.size()));
  Child long_server = server_that(long_ones.directory(), serve_one_late(longer.size()));
  const UniqueFd short_client = connect_to(short_server);
  const UniqueFd long_client = connect_to(long_server);
  for (const UniqueFd* client : {&short_client, &long_client}) {
    greet(*client, handshakes()[0]);
    ask_once(*client, kRequest);
  }
  send_bytes(short_client, control);
  send_bytes(long_client, longer);
  (void)short_server.hear();
  (void)long_server.hear();
  const auto sent = std::chrono::steady_clock::now();
  const auto in_flight = [](const Watched& where) { return where.value("tacho_requests_in_flight"); };
  CHECK(in_flight(short_ones) == 1);
  REQUIRE(shared().wait_for([&] { return in_flight(short_ones) == 0; }, 12s));
  CHECK(std::chrono::steady_clock::now() - sent > 4s);
  CHECK(in_flight(long_ones) == 1);
  CHECK(short_ones.value("tacho_oneway_messages_total") == 1);
  for (const Child* server : {&short_server, &long_server}) {
    server->tell();
  }
  receive_once(short_client, 100);
  receive_once(long_client, 100);
  (void)short_server.hear();
  (void)long_server.hear();
  for (const Watched* where : {&short_ones, &long_ones}) {
    CHECK(where->value("tacho_requests_total") == 2);
    CHECK(in_flight(*where) == 0);
  }
  CHECK(short_ones.sum("tacho_request_duration_seconds") > 4);
  for (Child* server : {&short_server, &long_server}) {
    close_connection(*server);
    finish(*server);
  }
}

TEST_CASE("over HTTP/2 under TLS acknowledged settings are no request, whatever is sent behind them") {
  static const std::string keys = kKeyExchange + kChangeCipherSpec + kFinished12;
  struct Case {
    Handshake handshake;
    std::size_t acknowledgement;  ///< a record's body: nine bytes, encrypted
    bool told;
  };
  const std::vector<Case> cases = {
      {handshakes()[0], 26, true},
      {handshakes()[2], 26, false},
      {handshakes()[6], 33, true},
      {{"TLS 1.2, ChaCha20", by_tls12("h2", kChaCha20), keys, true}, 25, true},
  };
  const bool asks_along = GENERATE(false, true);
  CAPTURE(asks_along);
  for (const Case& each : cases) {
    CAPTURE(each.handshake.name);
    const std::string acknowledgement = record(23, std::string(each.acknowledgement, 'a'));
    const Watched where;
    Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line& parent) {
      shake_hands(connection, each.handshake);
      answer(connection, kRequest.size());
      // A proxy sends head and body apart.
      receive_once(connection, acknowledgement.size());
      if (asks_along) {
        parent.tell();
        receive_once(connection, kRequest.size());
      }
      send_once(connection, 100);
      parent.tell();
    });
    const UniqueFd client = connect_to(server);
    greet(client, each.handshake);
    ask_once(client, kRequest);
    send_bytes(client, acknowledgement);
    if (asks_along) {
      (void)server.hear();
      send_bytes(client, kRequest);
    }
    receive_once(client, 100);
    (void)server.hear();
    CHECK(where.value("tacho_requests_total") == (each.told && !asks_along ? 1 : 2));
    CHECK(where.value("tacho_oneway_messages_total") == (each.told && !asks_along ? 1 : 0));
    CHECK(where.value("tacho_requests_in_flight") == 0);
    close_connection(server);
    finish(server);
  }
}
