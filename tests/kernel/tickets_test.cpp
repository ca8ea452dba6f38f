// Session tickets of TLS 1.3: where a request is read with the client's last flight, they are not its reply.

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

constexpr int kConnections = 7;
constexpr auto kWork = 40ms;
const std::string kTicket = record(23, std::string(250, 't'));
const std::string kReply = record(23, std::string(300, 'r'));
const std::string kFlight = kServerHello + kChangeCipherSpec + record(23, std::string(800, 'c')) + kLongFinished;

/// What a server sends when it has read the client's last flight and a request, and when it has worked.
struct Reply {
  std::string name;
  std::string first;
  std::string last;
  bool at_once;  ///< the first is the reply's beginning
  std::string flight = kFlight;
};

std::vector<Reply> replies() {
  return {
      {"two tickets", kTicket + kTicket, kReply, false},
      {"two tickets, and what is as long", kTicket + kTicket, kTicket, false},
      {"four tickets", kTicket + kTicket + kTicket + kTicket, kReply, false},
      {"one ticket", kTicket, kReply, false},
      {"a ticket and the reply's beginning", kTicket + kReply, kReply, true},
      {"the reply's beginning, behind a ticket with the handshake", kTicket, kReply, true, kFlight + kTicket},
      {"the reply's beginning, as short as no ticket", record(23, std::string(60, 'r')), kReply, true},
  };
}

/// The client's side of the handshake, with something behind it.
void ask_with_flight(const UniqueFd& client, const std::string& behind, const std::string& flight = kFlight) {
  send_bytes(client, kHello);
  receive_once(client, flight.size());
  send_bytes(client, kChangeCipherSpec + kLongFinished + behind);
}

/// The server's.
void take_flight(const UniqueFd& connection, std::size_t behind, const std::string& flight = kFlight) {
  receive_once(connection, kHello.size());
  send_bytes(connection, flight);
  receive_once(connection, kChangeCipherSpec.size() + kLongFinished.size() + behind);
}

constexpr double seconds(std::chrono::duration<double> time) {
  return time.count();
}

}  // namespace

TEST_CASE("tickets behind the client's last flight do not answer the request that came with it") {
  for (const Reply& reply : replies()) {
    CAPTURE(reply.name);
    const Watched where;
    Child server(where.directory(), [&](Line& parent) {
      const UniqueFd listener = listen_tcp();
      parent.tell(port_of(listener));
      for (int i = 0; i < kConnections; ++i) {
        const UniqueFd connection = accept_from(listener);
        take_flight(connection, kRequest.size(), reply.flight);
        send_bytes(connection, reply.first);
        std::this_thread::sleep_for(kWork);
        send_bytes(connection, reply.last);
        receive_once(connection, kRequest.size());
        send_bytes(connection, kReply);
      }
      parent.tell();
      (void)parent.hear();
    });
    const auto port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd client = connect_tcp(port);
      ask_with_flight(client, kRequest, reply.flight);
      receive_once(client, reply.first.size() + reply.last.size());
      send_bytes(client, kRequest);
      receive_once(client, kReply.size());
    }
    (void)server.hear();
    CHECK(where.value("tacho_requests_total") == 2 * kConnections);
    CHECK(where.value("tacho_handshakes_total") == kConnections);
    // Not all of it: where a ticket is sent late it looks like the reply.
    const double most = kConnections * seconds(kWork) / 2;
    CHECK((where.sum("tacho_request_duration_seconds") >= most) == !reply.at_once);
    server.tell();
    server.finish();
    CHECK(where.value("tacho_requests_in_flight") == 0);
    CHECK(where.value("tacho_requests_unanswered_total") == 0);
  }
}

TEST_CASE("a request of which a part is read with the client's last flight is one, if several tickets follow") {
  const bool several = GENERATE(true, false);
  CAPTURE(several);
  const std::string tickets = several ? kTicket + kTicket : kTicket;
  const Watched where;
  Child server(where.directory(), [&tickets](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = accept_from(listener);
      take_flight(connection, kRequest.size());
      send_bytes(connection, tickets);
      parent.tell();
      receive_once(connection, kRequest.size());
      parent.tell();
      (void)parent.hear();
      send_bytes(connection, kReply);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd client = connect_tcp(port);
    ask_with_flight(client, kRequest);
    receive_once(client, tickets.size());
    (void)server.hear();
    CHECK(where.value("tacho_requests_in_flight") == (several ? 1 : 0));
    std::this_thread::sleep_for(kWork);
    send_bytes(client, kRequest);
    (void)server.hear();
    server.tell();
    receive_once(client, kReply.size());
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == (several ? 1 : 2) * kConnections);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK((where.sum("tacho_request_receive_seconds") >= kConnections * seconds(kWork)) == several);
  CHECK(where.sum("tacho_request_duration_seconds") < kConnections * seconds(kWork));
  server.tell();
  server.finish();
}

TEST_CASE("a client that goes after the tickets had no reply") {
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = accept_from(listener);
      take_flight(connection, kRequest.size());
      send_bytes(connection, kTicket + kTicket);
      wait_for_end(connection);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd client = connect_tcp(port);
    ask_with_flight(client, kRequest);
    receive_once(client, 2 * kTicket.size());
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == kConnections);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
}
