// HTTP/2 under TLS begins with settings, which are no request; told by the lengths of records.

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/served_in_turn.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kConnections = 7;

/// What the client sends at once, and what the server sends then, one by one; nothing, and the client waits for nobody.
struct Turn {
  std::string asked;
  std::vector<std::string> sent;
};

struct Life {
  std::string name;
  std::vector<Turn> turns;
  int requests;
};

/// A record of so many bytes of data under TLS 1.3, and under TLS 1.2 with AES-GCM.
std::string data(std::size_t bytes) {
  return record(23, std::string(bytes + 17, 'd'));
}
std::string data12(std::size_t bytes) {
  return record(23, std::string(bytes + 24, 'd'));
}

/// ServerHello, and what is encrypted of the flight: EncryptedExtensions with the choice of HTTP/2, Finished.
const std::string kChoice = record(22, std::string(122, 's')) + kChangeCipherSpec + record(23, std::string(32, 'e')) +
                            record(23, std::string(69, 'f'));
/// A ServerHello of TLS 1.2 that chooses HTTP/2 in the clear.
const std::string kChoice12 = record(22, std::string(70, 's') + std::string("\0\x10\0\5\0\3\2h2", 9));
const std::string kTicket = record(23, std::string(250, 't'));
/// Preface, one setting and a window; two settings and a window; an acknowledgement.
constexpr std::size_t kFirst = 24 + 9 + 6 + 13;
constexpr std::size_t kOther = 9 + 2 * 6 + 13;
constexpr std::size_t kKnown = 9;
constexpr std::size_t kAsk = 9 + 41;

const std::vector<Life>& lives() {
  static const Turn hello{kHello, {kChoice}};
  static const std::string flight = kChangeCipherSpec + kLongFinished;
  static const Turn hello12{kHello, {kChoice12}},
      keys12{kKeyExchange + kChangeCipherSpec + kFinished12, {kChangeCipherSpec + kFinished12}};
  static const Turn request{data(kAsk), {data(400)}};
  static const std::vector<Life> all = {
      {"settings behind the handshake, the client waits for the server's",
       {hello,
        {flight + data(kFirst), {kTicket, kTicket, data(kOther), data(kKnown)}},
        {data(kKnown), {}},
        request,
        request},
       2},
      {"tickets and settings in one send",
       {hello, {flight + data(kFirst), {kTicket + kTicket + data(kOther)}}, {data(kKnown) + data(kAsk), {data(400)}}},
       1},
      {"settings by themselves", {hello, {flight, {kTicket}}, {data(kFirst), {data(kOther)}}, request}, 1},
      {"settings, and those of the server's are known already",
       {hello, {flight, {kTicket, data(kOther)}}, {data(kFirst) + data(kKnown), {data(kKnown)}}, request},
       1},
      {"preface and settings in records of their own",
       {hello, {flight, {kTicket + data(kOther)}}, {data(24) + data(9) + data(13), {data(kKnown)}}, request},
       1},
      {"a request behind the settings",
       {hello, {flight + data(kFirst) + data(kAsk), {kTicket, data(kOther), data(400)}}, request},
       2},
      {"a request behind the settings, as long as they are",
       {hello, {flight, {kTicket}}, {data(kFirst + 30), {data(kOther), data(400)}}, request},
       2},
      {"a request behind the settings, known settings before its reply",
       {hello,
        {flight + data(kFirst) + data(kAsk), {kTicket, kTicket, data(kOther)}},
        {data(kKnown), {data(400)}},
        request},
       2},
      {"settings and nothing else", {hello, {flight + data(kFirst), {kTicket, data(kOther)}}}, 0},
      {"settings under TLS 1.2",
       {hello12, keys12, {data12(kFirst), {data12(kOther)}}, {data12(kKnown) + data12(kAsk), {data12(400)}}},
       1},
      {"a request behind the settings under TLS 1.2",
       {hello12, keys12, {data12(kFirst) + data12(kAsk), {data12(kOther), data12(400)}}, {data12(kAsk), {data12(400)}}},
       2},
  };
  return all;
}

/// Serves one life; tells when all that was sent in a turn has been read and answered.
void live(const UniqueFd& connection, const Life& life, Line& parent) {
  for (const Turn& turn : life.turns) {
    receive_once(connection, turn.asked.size());
    for (const std::string& sent : turn.sent) {
      send_bytes(connection, sent);
    }
    parent.tell();
  }
}

}  // namespace

TEST_CASE("settings of HTTP/2 under TLS are no request") {
  for (const Life& life : lives()) {
    CAPTURE(life.name);
    const Watched where;
    Child server = served_in_turn(where.directory(), kConnections,
                                  [&](const UniqueFd& connection, Line& parent) { live(connection, life, parent); });
    const auto port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd client = connect_tcp(port);
      for (const Turn& turn : life.turns) {
        send_bytes(client, turn.asked);
        const auto sent = std::accumulate(turn.sent.begin(), turn.sent.end(), std::string());
        if (!sent.empty()) {
          receive_once(client, sent.size());
        }
        (void)server.hear();
      }
    }
    server.finish();
    CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
    CHECK(where.value("tacho_requests_total") == kConnections * life.requests);
    CHECK(where.value("tacho_requests_unanswered_total") == 0);
    CHECK(where.value("tacho_requests_in_flight") == 0);
    CHECK(where.value("tacho_request_duration_seconds_count") == kConnections * life.requests);
  }
}

TEST_CASE("a request that comes with the last flight is answered by its reply, and not by tickets") {
  using namespace std::chrono_literals;
  constexpr auto kWork = 40ms;
  static const std::string settings = data(kOther), reply = data(400);
  struct Case {
    std::string name;
    std::vector<std::string> before;  ///< what is sent before the server works
    std::vector<std::string> after;   ///< and what behind that
    bool ends;                        ///< the connection ends then, else another request follows
  };
  const std::vector<Case> cases = {
      {"tickets, then the reply", {kTicket, kTicket}, {reply}, true},
      {"tickets, then the reply, and another request", {kTicket, kTicket}, {reply}, false},
      {"tickets and settings, then the reply", {kTicket, kTicket, settings}, {reply}, true},
      {"a ticket and settings, then the reply", {kTicket, settings}, {reply, reply}, false},
      {"a reply without tickets", {}, {reply}, true},
      {"a reply without tickets, and another request", {}, {reply}, false},
      {"a long reply", {}, {data(3000), data(3000)}, false},
      {"a reply in two pieces, all as long", {}, {reply, reply}, true},
  };
  for (const Case& each : cases) {
    CAPTURE(each.name);
    const Watched where;
    Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line& parent) {
      receive_once(connection, kHello.size());
      send_bytes(connection, kChoice);
      receive_once(connection, (kChangeCipherSpec + kLongFinished + data(kFirst) + data(kAsk)).size());
      for (const std::string& sent : each.before) {
        send_bytes(connection, sent);
      }
      std::this_thread::sleep_for(kWork);
      for (const std::string& sent : each.after) {
        send_bytes(connection, sent);
      }
      if (!each.ends) {
        receive_once(connection, data(kAsk).size());
        send_bytes(connection, reply);
      }
      parent.tell();
    });
    const UniqueFd client = connect_to(server);
    send_bytes(client, kHello);
    receive_once(client, kChoice.size());
    send_bytes(client, kChangeCipherSpec + kLongFinished + data(kFirst) + data(kAsk));
    const auto size = [](const std::vector<std::string>& all) {
      return std::accumulate(all.begin(), all.end(), std::string()).size();
    };
    receive_once(client, size(each.before) + size(each.after));
    if (!each.ends) {
      send_bytes(client, data(kAsk));
      receive_once(client, reply.size());
    }
    (void)server.hear();
    close_connection(server);
    CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
    CHECK(where.value("tacho_requests_total") == (each.ends ? 1 : 2));
    CHECK(where.value("tacho_requests_unanswered_total") == 0);
    CHECK(where.value("tacho_requests_in_flight") == 0);
    CHECK(where.sum("tacho_request_duration_seconds") >= 0.04);
    finish(server);
  }
}
