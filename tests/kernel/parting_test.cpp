// Clients that give up: they say goodbye within an open request, and close the connection before they have a reply.

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "kernel/support/child.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 600ms;  ///< of a client
constexpr auto kShortly = 50ms;
constexpr auto kWork = 400ms;  ///< of a server, after its client has given up

const std::string kFlight = kChangeCipherSpec + kFinished;
const std::string kReply = record(23, std::string(400, 'r'));

struct Goodbye {
  std::string name;
  bool modern = true;  ///< TLS 1.3, else 1.2
  std::chrono::milliseconds patience = kPatience;
  bool closes = true;
  std::size_t header = 0;      ///< bytes of the goodbye that the server reads by themselves
  bool is_read = true;         ///< before the server answers
  std::string reply = kReply;  ///< nothing: the server closes the connection
  int requests = 1;
  int one_way = 0;
  int unanswered = 0;
};

/// A handshake, then a request that the client gives up. The server reads the goodbye, and answers later.
void live(const Goodbye& life) {
  CAPTURE(life.name);
  const std::string& goodbye = life.modern ? kShort : kAlert;
  const Watched where;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line&) {
    receive_once(connection, kHello.size());
    send_bytes(connection, kServerHello + kRequest);
    const std::string flight = life.modern ? kFlight : kKeyExchange + kChangeCipherSpec + kFinished12;
    receive_once(connection, flight.size());
    send_bytes(connection, life.modern ? kRequest : kChangeCipherSpec + kFinished12);
    receive_once(connection, kRequest.size());
    if (life.is_read) {
      if (life.header > 0) {
        receive_once(connection, life.header);
      }
      receive_once(connection, goodbye.size() - life.header);
    }
    if (life.closes) {
      wait_for_end(connection);
    }
    std::this_thread::sleep_for(kWork);
    if (!life.reply.empty()) {
      send_bytes(connection, life.reply);
    }
  });
  std::optional<UniqueFd> client = connect_to(server);
  send_bytes(*client, kHello);
  receive_once(*client, kServerHello.size() + kRequest.size());
  send_bytes(*client, life.modern ? kFlight : kKeyExchange + kChangeCipherSpec + kFinished12);
  receive_once(*client, life.modern ? kRequest.size() : kChangeCipherSpec.size() + kFinished12.size());
  send_bytes(*client, kRequest);
  std::this_thread::sleep_for(life.patience);
  send_bytes(*client, goodbye);
  if (life.closes) {
    client.reset();
  }
  (void)server.hear();
  close_connection(server);
  const double lasted = std::chrono::duration<double>(life.patience + kWork).count();
  CHECK(where.value("tacho_requests_total") == life.requests);
  CHECK(where.value("tacho_oneway_messages_total") == life.one_way);
  CHECK(where.value("tacho_requests_unanswered_total") == life.unanswered);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_handshakes_total") == 2);
  CHECK(where.value("tacho_multiplexed_connections_total") == 0);
  if (life.requests > 0 && life.closes) {
    CHECK(where.sum("tacho_request_duration_seconds") == Approx(lasted).margin(0.1));
    CHECK(where.sum("tacho_request_service_seconds") == Approx(lasted).margin(0.1));
  }
  finish(server);
}

}  // namespace

TEST_CASE("the reply to a client that has given up under TLS answers its request, from its beginning on") {
  live({.name = "TLS 1.3"});
  live({.name = "TLS 1.2", .modern = false});
  live({.name = "a header is read by itself", .header = 5});
  live({.name = "TLS 1.2, a header is read by itself", .modern = false, .header = 5});
  live({.name = "soon", .patience = kShortly});
  live({.name = "TLS 1.2, soon", .modern = false, .patience = kShortly});
  live({.name = "nobody reads it", .is_read = false});
}

TEST_CASE("a request that its client has given up under TLS is unanswered if its server closes the connection") {
  live({.name = "without a word", .reply = "", .requests = 0, .unanswered = 1});
  live({.name = "with a goodbye", .reply = kShort, .requests = 0, .unanswered = 1});
  live({.name = "TLS 1.2, with a goodbye", .modern = false, .reply = kAlert, .requests = 0, .unanswered = 1});
}

TEST_CASE("what is as short as a goodbye is a message if the client stays") {
  live({.name = "answered", .closes = false, .requests = 1, .one_way = 1});
  live({.name = "soon", .patience = kShortly, .closes = false, .requests = 1});
}

TEST_CASE("the end of a session that nobody reads is no second request") {
  const Watched where;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line&) {
    receive_once(connection, 40);
    wait_for_end(connection);
    send_once(connection, 60);
  });
  std::optional<UniqueFd> client = connect_to(server);
  send_once(*client, 40);
  std::this_thread::sleep_for(kShortly);
  send_once(*client, 5);  // PostgreSQL's Terminate
  client.reset();
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 1);
  CHECK(where.value("tacho_multiplexed_connections_total") == 0);
  close_connection(server);
  finish(server);
}
