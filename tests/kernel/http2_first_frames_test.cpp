// Connections of HTTP/2 under TLS whose server does not show that it chose it, and whose clients ask before they read
// what it sends: the first frames of both sides tell.

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

constexpr int kConnections = 5;

/// A hello that offers these protocols (RFC 7301, 3.1), each with its length in front.
std::string hello_that_offers(const std::string& protocols) {
  const auto bytes = static_cast<char>(protocols.size());
  const std::string extension = std::string{} + '\0' + '\x10' + '\0' + static_cast<char>(bytes + 2) + '\0' + bytes;
  return record(22, message(1, std::string(120, 'h') + extension + protocols + std::string(90, 'h')));
}

const std::string kHttp2 = "\2h2";
const std::string kHttp1 = "\10http/1.1";
/// A server's part of a handshake, all encrypted messages in one record.
const std::string kHidden = record(22, std::string(122, 's')) + kChangeCipherSpec + record(23, std::string(1126, 'a'));
/// The same with the choice of HTTP/1.1 in a record of its own.
const std::string kShown = record(22, std::string(122, 's')) + kChangeCipherSpec + record(23, std::string(38, 'e')) +
                           record(23, std::string(1100, 'a'));
const std::string kFlight = kChangeCipherSpec + kFinished;

/// A record of TLS 1.3, by how much is in it.
std::string plain(std::size_t bytes) {
  return record(23, std::string(bytes + 17, 'p'));
}

/// What the client sends and the server reads at once, or what the server sends.
struct Step {
  bool client;
  std::string data;
};

Step asks(const std::string& data) {
  return {true, data};
}

Step sends(const std::string& data) {
  return {false, data};
}

struct Dialogue {
  std::string name;
  std::vector<Step> steps;
  bool told;
  std::string hello = hello_that_offers(kHttp2 + kHttp1);
  std::string chosen = kHidden;
};

const Step kTickets = sends(plain(162));
const Step kSettings = sends(plain(33));
const Step kWindow = sends(plain(22));  // with the acknowledgement of the client's settings
const Step kAck = asks(plain(9));
const Step kReply = sends(plain(59));
const std::string kSeveral = plain(226);  // preface, settings, window and requests

std::vector<Dialogue> of_http2() {
  return {
      {"requests with Finished", {asks(kFlight + kSeveral), kTickets, kSettings, kWindow, kAck, kReply}, true},
      {"requests behind it", {asks(kFlight), kTickets, asks(kSeveral), kSettings, kWindow, kAck, kReply}, true},
      {"a client that offers nothing else",
       {asks(kFlight + kSeveral), kTickets, kSettings, kWindow, kAck, kReply},
       true,
       hello_that_offers(kHttp2)},
      {"the client's acknowledgement comes first",
       {asks(kFlight + kSeveral), kTickets, kSettings, kAck, kWindow, kReply},
       true},
      {"no window", {asks(kFlight + kSeveral), kTickets, kSettings, sends(plain(9)), kAck, kReply}, true},
      {"no tickets", {asks(kFlight + plain(70) + plain(45)), kSettings, kWindow, kAck, kReply}, true},
      {"tickets, settings and acknowledgement in a send",
       {asks(kFlight + kSeveral), sends(plain(164) + plain(33) + plain(22)), kAck, kReply},
       true},
      {"a request apart",
       {asks(kFlight), kTickets, asks(plain(64) + plain(44)), kSettings, kWindow, kAck, kReply},
       true},
      {"requests apart",
       {asks(kFlight), kTickets, asks(plain(64) + plain(44) + plain(19) + plain(19)), kSettings, kWindow, kAck, kReply},
       true},
      {"more requests before the acknowledgement",
       {asks(kFlight), kTickets, asks(plain(64)), kSettings, kWindow, asks(plain(44)), asks(plain(9) + plain(19)),
        kReply},
       true},
      {"a reply before the acknowledgement is read",
       {asks(kFlight + kSeveral), kTickets, kSettings, kWindow, kReply, kAck, kReply, asks(plain(14)), kReply},
       true},
      {"a client that pads (Java)",
       {asks(kFlight + kSeveral), kTickets, kSettings, kWindow, asks(plain(25)), kReply},
       true},
  };
}

std::vector<Dialogue> of_others() {
  const Step get = asks(plain(90));
  const Step body = kAck;
  const Step head = sends(plain(39));  // "Content-Length: 22", and nothing that is not needed
  const Step rest = sends(plain(22));
  const Step none = sends(plain(27));       // 204
  const Step not_found = sends(plain(45));  // "Content-Length: 9"
  const std::vector<Step> as_http2 = {asks(kFlight + plain(175)), kTickets, kSettings, kWindow, kAck, kReply};
  return {
      {"no offer of HTTP/2", as_http2, false, hello_that_offers(kHttp1)},
      {"no offer at all", as_http2, false, kHello},
      {"a server that shows another choice", as_http2, false, hello_that_offers(kHttp2 + kHttp1), kShown},
      {"head and body apart", {asks(kFlight + plain(90)), kTickets, head, rest, get, head, rest}, false},
      {"the same, no tickets", {asks(kFlight + plain(90)), head, rest, get, head, rest}, false},
      {"then requests with a body of nine bytes",
       {asks(kFlight + plain(90)), kTickets, head, rest, get, body, head, rest, get, body, head, rest},
       false},
      {"the shortest of them",
       {asks(kFlight + plain(90)), kTickets, head, rest, asks(plain(46)), body, head, rest, get, body, head, rest},
       false},
      {"replies without a body", {asks(kFlight + plain(90)), kTickets, none, get, none, get, body, none}, false},
      {"a reply before the body is read",
       {asks(kFlight + plain(90)), kTickets, not_found, sends(plain(9)), body, get, not_found, sends(plain(9))},
       false},
      {"'100 Continue', and a body", {asks(kFlight + plain(150)), kTickets, sends(plain(25)), body, head, rest}, false},
      {"a long reply, then such lengths",
       {asks(kFlight + plain(90)), kTickets, sends(plain(900)), get, head, get, rest, get, body, kReply},
       false},
      {"what has other lengths", {asks(kFlight + kSeveral), kTickets, sends(plain(34)), kWindow, kAck, kReply}, false},
      {"the same behind them", {asks(kFlight + kSeveral), kTickets, kSettings, sends(plain(21)), kAck, kReply}, false},
  };
}

void serve(const UniqueFd& connection, const Dialogue& dialogue) {
  receive_once(connection, dialogue.hello.size());
  send_in_buffers(connection, dialogue.chosen);
  for (const Step& step : dialogue.steps) {
    if (step.client) {
      receive_once(connection, step.data.size());
    } else {
      send_in_buffers(connection, step.data);
    }
  }
}

void ask(const UniqueFd& client, const Dialogue& dialogue) {
  send_bytes(client, dialogue.hello);
  receive_once(client, dialogue.chosen.size());
  for (const Step& step : dialogue.steps) {
    if (step.client) {
      send_bytes(client, step.data);
    } else {
      receive_once(client, step.data.size());
    }
  }
}

void check(const std::vector<Dialogue>& dialogues) {
  for (const Dialogue& dialogue : dialogues) {
    CAPTURE(dialogue.name);
    const Watched where;
    Child server = served_in_turn(where.directory(), kConnections, [&](const UniqueFd& connection, Line& parent) {
      serve(connection, dialogue);
      parent.tell();
      (void)parent.hear();
    });
    const auto port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd client = connect_tcp(port);
      ask(client, dialogue);
      (void)server.hear();
      server.tell();
    }
    server.finish();
    CHECK(where.value("tacho_multiplexed_connections_total") == (dialogue.told ? kConnections : 0));
    CHECK(where.value("tacho_requests_in_flight") == 0);
  }
}

}  // namespace

TEST_CASE("HTTP/2 under TLS that no handshake tells of is told by what both sides acknowledge, whatever is asked") {
  check(of_http2());
}

TEST_CASE("other protocols under TLS, and HTTP/1.1 to a client that offers HTTP/2, have no such first frames") {
  check(of_others());
}
