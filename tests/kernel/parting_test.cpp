// Clients that give up: they say goodbye within an open request, and close the connection before they have a reply.

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
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

constexpr auto kPatience = 600ms;  ///< of a client
constexpr auto kShortly = 50ms;
constexpr auto kAtOnce = 10ms;
constexpr auto kWork = 400ms;  ///< of a server, after its client has given up

const std::string kFlight = kChangeCipherSpec + kFinished;
const std::string kReply = record(23, std::string(400, 'r'));

enum class Leaves { closes, shuts_down, stays };

struct Goodbye {
  std::string name;
  bool modern = true;                     ///< TLS 1.3, else 1.2
  bool joined = false;                    ///< the request comes with the last flight
  std::vector<std::string> tickets = {};  ///< each sent by itself, behind the flight
  std::chrono::milliseconds patience = kPatience;
  std::string before = "";  ///< what the client says before its goodbye
  bool says = true;         ///< the client says goodbye
  Leaves leaves = Leaves::closes;
  std::size_t header = 0;      ///< bytes of the goodbye that the server reads by themselves
  bool is_read = true;         ///< before the server answers
  std::string reply = kReply;  ///< nothing: the server closes the connection
  bool goes_on = false;        ///< the client asks again
  int requests = 1;
  int one_way = 0;
  int unanswered = 0;
};

/// A handshake, then a request that the client gives up. The server reads the goodbye, and answers later.
void live(const Goodbye& life, int tries = 15) {
  CAPTURE(life.name);
  const std::string goodbye = life.says ? life.modern ? kShort : kAlert : "";
  const std::string flight = life.modern ? kFlight : kKeyExchange + kChangeCipherSpec + kFinished12;
  const std::string end = life.modern ? kRequest : kChangeCipherSpec + kFinished12;
  const Watched where;
  const Shared<bool> late;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line&) {
    receive_once(connection, kHello.size());
    send_bytes(connection, kServerHello + kRequest);
    receive_once(connection, flight.size() + (life.joined ? kRequest.size() : 0));
    const auto read = std::chrono::steady_clock::now();
    for (const std::string& ticket : life.tickets) {
      send_bytes(connection, ticket);
    }
    *late = std::chrono::steady_clock::now() - read > kAtOnce;
    if (!life.joined) {
      send_bytes(connection, end);
      receive_once(connection, kRequest.size());
    }
    if (life.says && life.is_read) {
      if (life.header > 0) {
        receive_once(connection, life.header);
      }
      receive_once(connection, goodbye.size() - life.header);
    }
    if (life.leaves != Leaves::stays) {
      wait_for_end(connection);
    }
    std::this_thread::sleep_for(kWork);
    if (!life.reply.empty()) {
      send_bytes(connection, life.reply);
    }
    if (life.goes_on) {
      receive_once(connection, kRequest.size());
      send_bytes(connection, kReply);
    }
  });
  std::optional<UniqueFd> client = connect_to(server);
  send_bytes(*client, kHello);
  receive_once(*client, kServerHello.size() + kRequest.size());
  send_bytes(*client, life.joined ? flight + kRequest : flight);
  for (const std::string& ticket : life.tickets) {
    receive_once(*client, ticket.size());
  }
  if (!life.joined) {
    receive_once(*client, end.size());
    send_bytes(*client, kRequest);
  }
  std::this_thread::sleep_for(life.patience);
  if (!life.before.empty()) {
    send_bytes(*client, life.before);
  }
  if (life.says) {
    send_bytes(*client, goodbye);
  }
  if (life.leaves == Leaves::closes) {
    client.reset();
  } else if (life.leaves == Leaves::shuts_down) {
    must(::shutdown(client->get(), SHUT_WR) == 0, "shutdown");
  }
  if (life.goes_on) {
    receive_once(*client, life.reply.size());
    send_bytes(*client, kRequest);
    receive_once(*client, kReply.size());
  }
  (void)server.hear();
  close_connection(server);
  if (*late && tries > 1) {
    // Tickets are told by the moment: a server that waited for a CPU is another one.
    finish(server);
    live(life, tries - 1);
    return;
  }
  const double lasted = std::chrono::duration<double>(life.patience + kWork).count();
  CHECK(where.value("tacho_requests_total") == life.requests);
  CHECK(where.value("tacho_oneway_messages_total") == life.one_way);
  CHECK(where.value("tacho_requests_unanswered_total") == life.unanswered);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_handshakes_total") == (life.joined ? 1 : 2));
  CHECK(where.value("tacho_multiplexed_connections_total") == 0);
  if (life.requests > 0 && !life.goes_on) {
    CHECK(where.sum("tacho_request_duration_seconds") == Approx(lasted).margin(0.1));
  }
  finish(server);
}

const std::string kTicket = record(23, std::string(282, 't'));

}  // namespace

TEST_CASE("the reply to a client that has given up under TLS answers its request, from its beginning on") {
  live({.name = "TLS 1.3"});
  live({.name = "TLS 1.2", .modern = false});
  live({.name = "a header is read by itself", .header = 5});
  live({.name = "TLS 1.2, a header is read by itself", .modern = false, .header = 5});
  live({.name = "soon", .patience = kShortly});
  live({.name = "TLS 1.2, soon", .modern = false, .patience = kShortly});
  live({.name = "nobody reads it", .is_read = false});
  live({.name = "nobody reads it, and the client waits",
        .patience = kShortly,
        .leaves = Leaves::stays,
        .is_read = false});
  live({.name = "TLS 1.2, nobody reads it, and the client waits",
        .modern = false,
        .patience = kShortly,
        .leaves = Leaves::stays,
        .is_read = false});
  live({.name = "nobody reads it, nor a database's end of session",
        .before = record(23, std::string(22, 't')),
        .is_read = false});
  live({.name = "the client waits for the server's goodbye", .leaves = Leaves::stays});
  live({.name = "with the last flight", .joined = true});
  live({.name = "with the last flight, soon", .joined = true, .patience = kShortly});
}

TEST_CASE("a request that its client has given up under TLS is unanswered if its server closes the connection") {
  live({.name = "without a word", .reply = "", .requests = 0, .unanswered = 1});
  live({.name = "with a goodbye", .reply = kShort, .requests = 0, .unanswered = 1});
  live({.name = "TLS 1.2, with a goodbye", .modern = false, .reply = kAlert, .requests = 0, .unanswered = 1});
  live({.name = "with a goodbye, for which the client waits",
        .leaves = Leaves::stays,
        .reply = kShort,
        .requests = 0,
        .unanswered = 1});
  live({.name = "the client says none",
        .says = false,
        .leaves = Leaves::shuts_down,
        .reply = kShort,
        .requests = 0,
        .unanswered = 1});
  live({.name = "with the last flight", .joined = true, .says = false, .reply = "", .requests = 0, .unanswered = 1});
  live({.name = "with the last flight, goodbyes", .joined = true, .reply = kShort, .requests = 0, .unanswered = 1});
  live({.name = "with the last flight, the server says goodbye",
        .joined = true,
        .says = false,
        .leaves = Leaves::shuts_down,
        .reply = kShort,
        .requests = 0,
        .unanswered = 1});
  live({.name = "with the last flight, tickets",
        .joined = true,
        .tickets = {kTicket, kTicket},
        .says = false,
        .reply = "",
        .requests = 0,
        .unanswered = 1});
  live({.name = "with the last flight, tickets and a goodbye",
        .joined = true,
        .tickets = {kTicket, kTicket},
        .says = false,
        .leaves = Leaves::shuts_down,
        .reply = kShort,
        .requests = 0,
        .unanswered = 1});
}

TEST_CASE("what is as short as a goodbye, and answered alike, is a message if the connection goes on") {
  live({.name = "Java's", .leaves = Leaves::stays, .reply = kPadded, .goes_on = true, .requests = 2, .one_way = 1});
  live({.name = "a ping", .leaves = Leaves::stays, .reply = kShort, .goes_on = true, .requests = 2, .one_way = 1});
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
