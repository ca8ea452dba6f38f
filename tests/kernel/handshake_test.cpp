// What of a TLS connection is a request and what is only its handshake, told by nothing but the types of records.

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/served_in_turn.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::string_literals;

namespace {

constexpr int kConnections = 11;

/// What the client sends until the server answers; the server reads it in these pieces.
using Flight = std::vector<std::string>;

/// What a server reads, in pieces that are sent at once, and what it sends then; nothing if 0. `more` it sends next.
/// `words`: what the reply says, if that matters. `unread`: what the client sends, too, and the server does not read.
struct Turn {
  Flight pieces;
  std::size_t reply;
  std::vector<std::size_t> more = {};
  std::string words = {};
  std::string unread = {};
};

Turn says(Flight pieces, const std::string& words, std::vector<std::size_t> more = {}) {
  return {std::move(pieces), words.size(), std::move(more), words};
}

struct Life {
  std::string name;
  std::vector<Turn> turns;
  int handshakes;
  int requests;
  int unanswered = 0;
};

/// A life whose flights are all answered; those of the handshake are no requests.
Life answered(std::string name, const std::vector<Flight>& flights, int handshakes) {
  Life life{std::move(name), {}, handshakes, static_cast<int>(flights.size()) - handshakes};
  for (const Flight& flight : flights) {
    life.turns.push_back({flight, 100});
  }
  return life;
}

const std::vector<Life>& conversations() {
  // GnuTLS reads head and body of a record apart; a body is as random as encryption makes it.
  static const std::string unlucky_body = "\x16\x03"s + std::string(51, 'f');
  static const std::string unlucky = record(23, unlucky_body);
  static const std::vector<Life> all = {
      answered("TLS 1.3", {{kHello}, {kChangeCipherSpec + kFinished}, {kRequest}, {kRequest}}, 2),
      answered("TLS 1.3, the last flight read in pieces", {{kHello}, {kChangeCipherSpec, kFinished}, {kRequest}}, 2),
      answered("TLS 1.3, the last flight is not answered",
               {{kHello}, {kChangeCipherSpec, kFinished, kRequest}, {kRequest}}, 1),
      answered("TLS 1.3, a body that looks like a handshake",
               {{kHello}, {kChangeCipherSpec, unlucky.substr(0, 5), unlucky_body, kRequest}, {kRequest}}, 1),
      answered("TLS 1.3, another hello is asked for", {{kHello}, {kChangeCipherSpec, kHello}, {kFinished}, {kRequest}},
               3),
      answered("TLS 1.2", {{kHello}, {kHello + kChangeCipherSpec + kFinished}, {kRequest}}, 2),
      answered("TLS 1.2, several records alike in one read",
               {{kHello}, {kKeyExchange + kChangeCipherSpec + kKeyExchange}, {kRequest}}, 2),
      answered("a plain exchange before TLS", {{"please"}, {kHello}, {kChangeCipherSpec + kFinished}, {kRequest}}, 2),
      answered("TLS 1.2, a certificate is asked for behind the first request",
               {{kHello},
                {kKeyExchange + kChangeCipherSpec + kFinished12},
                {kRequest},
                {kHello},
                {kKeyExchange},
                {kRequest}},
               4),
      answered("TLS 1.2, a certificate is asked for behind the third request",
               {{kHello},
                {kKeyExchange + kChangeCipherSpec + kFinished12},
                {kRequest},
                {kRequest},
                {kRequest},
                {kHello},
                {kKeyExchange + kChangeCipherSpec + kFinished12},
                {kRequest}},
               4),
      answered("TLS 1.2, a session is resumed", {{kHello}, {kChangeCipherSpec, kFinished12, kRequest}, {kRequest}}, 1),
      answered("TLS 1.2, nobody saw its beginning",
               {{kKeyExchange + kChangeCipherSpec + kFinished12}, {kRequest}, {kRequest}}, 1),
      answered("TLS 1.2, nobody saw its beginning, in pieces",
               {{kKeyExchange.substr(0, 5), kKeyExchange.substr(5), kChangeCipherSpec + kFinished12}, {kRequest}}, 1),
      answered("no TLS, a length like the beginning of a handshake",
               {{"please"}, {"\x16\x03\x00\x00\x03"s + std::string(785, 'q')}, {"please"}}, 0),
      answered("no TLS", {{"\x17\x03\x03"}, {"\x14\x03\x03"}}, 0),
  };
  return all;
}

std::string together(const Flight& flight) {
  std::string all;
  for (const std::string& piece : flight) {
    all += piece;
  }
  return all;
}

/// Serves what it reads of one life.
void live(const UniqueFd& connection, const Life& life, Line& parent) {
  for (const Turn& turn : life.turns) {
    for (const std::string& piece : turn.pieces) {
      receive_once(connection, piece.size());
    }
    if (turn.reply > 0) {
      send_bytes(connection, turn.words.empty() ? std::string(turn.reply, '.') : turn.words);
      for (const std::size_t bytes : turn.more) {
        send_once(connection, bytes);
      }
    } else {
      parent.tell();
    }
  }
  parent.tell();
  (void)parent.hear();
}

void play(const Life& life, const Watched& where) {
  Child server = served_in_turn(where.directory(), kConnections,
                                [&](const UniqueFd& connection, Line& parent) { live(connection, life, parent); });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < kConnections; ++i) {
    UniqueFd client = connect_tcp(port);
    for (const Turn& turn : life.turns) {
      const std::string data = together(turn.pieces) + turn.unread;
      send_bytes(client, data);
      if (turn.reply > 0) {
        receive_once(client, std::accumulate(turn.more.begin(), turn.more.end(), turn.reply));
      } else {
        (void)server.hear();
      }
    }
    (void)server.hear();
    client.reset();
    server.tell();
  }
  server.finish();
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
  // One page for all: an emulated machine takes a second for each.
  const auto page = shared().page();
  const Labels of_target{{"cgroup", where.path()}};
  CHECK(page.value("tacho_requests_total", of_target) == kConnections * life.requests);
  CHECK(page.value("tacho_handshakes_total", of_target) == kConnections * life.handshakes);
  CHECK(page.value("tacho_requests_unanswered_total", of_target) == kConnections * life.unanswered);
  CHECK(page.value("tacho_requests_in_flight", of_target) == 0);
}

}  // namespace

TEST_CASE("the turns of a TLS handshake are no requests, all others are") {
  for (const Life& life : conversations()) {
    CAPTURE(life.name);
    const Watched where;
    play(life, where);
    // Conditions need two samples, which are taken once a second.
    CHECK(shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "no_poll"}}) == 1; }));
    CHECK(where.value("tacho_target_condition", {{"condition", "multiplexed"}}) == 0);
  }
}

namespace {

const std::string kProxyLine = "PROXY TCP4 192.0.2.7 192.0.2.8 51234 443\r\n";
// MySQL's SSLRequest: a packet of 32 bytes, the first that a client sends.
const std::string kWish = "\x20\0\0\1\x85\xae\xff\x19\0\0\0\1\x2d"s + std::string(23, '\0');
const std::string kOldHello = "\x16\3\0\0\x79"s + message(1, std::string(0x75, 'h'));
const std::string kProxyHeader = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"s + std::string(12, '\x16');

const std::vector<Life>& lives() {
  static const std::string tickets = record(23, std::string(413, 't'));
  static const Turn hello{{kHello}, 100};
  static const Turn flight{{kChangeCipherSpec + kFinished}, 100};
  static const Turn padded_flight{{kChangeCipherSpec + kPaddedFinished}, 100};
  static const Turn silent_flight{{kChangeCipherSpec, kFinished}, 0};
  static const Turn key_exchange{{kHello + kChangeCipherSpec}, 100};
  static const Turn request{{kRequest}, 100};
  static const std::string plain = "GET / HTTP/1.0";
  static const std::string early = kHello + kChangeCipherSpec + kRequest;
  static const std::string asks = kChangeCipherSpec + kFinished + kRequest;
  static const std::string begun = kCertificate.substr(0, 400), rest = kCertificate.substr(400);
  static const std::vector<Life> all = {
      {"TLS 1.3, the goodbye is answered", {hello, flight, request, request, {{kShort}, 24}}, 2, 2},
      {"TLS 1.3, the goodbye is read in pieces",
       {hello, flight, request, {{kShort.substr(0, 5), kShort.substr(5)}, 24}},
       2,
       1},
      {"TLS 1.3, the goodbye is not answered", {hello, flight, request, {{kShort}, 0}}, 2, 1},
      {"TLS 1.3, a goodbye instead of requests", {hello, flight, {{kShort}, 24}}, 2, 0},
      {"TLS 1.2, the goodbye is answered", {hello, key_exchange, request, {{kAlert}, 31}}, 2, 1},
      {"TLS 1.2, the goodbye is not answered", {hello, key_exchange, request, {{kAlert}, 0}}, 2, 1},
      {"short requests are requests when others follow",
       {hello, flight, {{kShort}, 24}, {{kShort}, 24}, request},
       2,
       3},
      {"a request whose header is read in pieces, the reply is as long",
       {hello, flight, request, {{kEndOfEarlyData.substr(0, 2), kEndOfEarlyData.substr(2)}, kEndOfEarlyData.size()}},
       2,
       2},
      {"a short request with a longer reply is one", {hello, flight, {{kShort}, 100}}, 2, 1},
      {"the last flight is not answered, the request comes later", {hello, silent_flight, request, request}, 1, 2},
      {"a client's certificate",
       {hello, {{kChangeCipherSpec + kCertificate + kVerify + kFinished}, 100}, request},
       2,
       1},
      {"a client's certificate, each record by itself",
       {hello,
        {{kChangeCipherSpec, kCertificate.substr(0, 5), kCertificate.substr(5), kVerify, kFinished}, 100},
        request},
       2,
       1},
      {"a client's certificate, with a request behind it",
       {hello, {{kChangeCipherSpec + kCertificate + kVerify + kFinished + kRequest}, 100}, request},
       1,
       2},
      {"a client's certificate that is not answered, the request comes later",
       {hello, {{kCertificate + kVerify + kFinished}, 0}, request},
       1,
       1},
      {"a client without a certificate to show",
       {hello, {{kChangeCipherSpec + kNoCertificate + kFinished}, 100}, request},
       2,
       1},
      {"a client's certificate, the whole flight in one record",
       {hello, {{kChangeCipherSpec + kWholeFlight}, 100}, request},
       2,
       1},
      {"a client's certificate, the whole flight in one record, with a request behind it",
       {hello, {{kChangeCipherSpec + kWholeFlight + kRequest}, 100}, request},
       1,
       2},
      {"a client's certificate that is asked for behind a request",
       {hello, flight, request, {{kCertificate + kVerify + kFinished}, 255, {255, 100}}, request},
       3,
       2},
      {"a client's certificate that is asked for behind the fourth request, read in pieces",
       {hello,
        flight,
        request,
        request,
        request,
        {{kCertificate.substr(0, 5), kCertificate.substr(5), kVerify.substr(0, 5), kVerify.substr(5), kLongFinished},
         100},
        request},
       3,
       4},
      {"a certificate that is asked for behind a request, and that the client has not",
       {hello, flight, request, {{kNoProof + kLongFinished}, 255, {100}}, request},
       3,
       2},
      {"requests of several records that are nearly such a certificate",
       {hello,
        flight,
        {{kCertificate + kVerify + kRequest}, 100},
        {{kCertificate + kCertificate + kFinished}, 100},
        {{kRequest + kFinished}, 100},
        {{kCertificate + kVerify + kFinished + kRequest}, 100}},
       2,
       4},
      {"begun between hello and answer, TLS 1.3", {says({}, kServerHello, {100}), {{kFinished}, 255}, request}, 1, 1},
      {"begun between hello and answer, TLS 1.2",
       {says({}, kServerHello, {2000}), {{kKeyExchange + kChangeCipherSpec + kFinished12}, 255}, request},
       1,
       1},
      {"begun in the midst of the hello",
       {says({kHello.substr(5)}, kServerHello, {100}), {{kChangeCipherSpec + kFinished}, 255}, request},
       2,
       1},
      {"begun in the midst of the hello, whose answer comes in one send",
       {says({kHello.substr(100)}, kServerHello + kChangeCipherSpec + kRequest), {{kFinished}, 255}, request},
       2,
       1},
      {"begun before the ticket, TLS 1.2", {says({}, kTicket12, {6, 45}), request, request}, 0, 2},
      {"begun before the ticket, TLS 1.2, one send",
       {says({}, kTicket12 + kChangeCipherSpec + kFinished12), request, request},
       0,
       2},
      {"begun before the server's Finished, TLS 1.2", {says({}, kFinished12), request, request}, 0, 2},
      {"begun before a server's Finished that happens to begin like an answer",
       {says({}, record(22, "\2" + std::string(39, 'f'))), request, request},
       0,
       2},
      {"begun before a client's Finished that happens to begin like a hello",
       {{{record(22, "\1" + std::string(39, 'f'))}, 255}, request, request},
       1,
       2},
      {"TLS 1.2, a request right behind the client's part of the handshake",
       {hello,
        says({kKeyExchange + kChangeCipherSpec + kFinished12 + kRequest}, kChangeCipherSpec + kFinished12, {100}),
        request},
       2,
       2},
      {"TLS 1.2, such a request, each message in a send of its own",
       {hello, says({kKeyExchange + kChangeCipherSpec + kFinished12 + kRequest}, kTicket12, {100}), request},
       2,
       2},
      {"TLS 1.2, such a request behind a certificate, read in pieces",
       {hello,
        says({kCertificate12.substr(0, 5), kCertificate12.substr(5), kKeyExchange + kChangeCipherSpec + kFinished12,
              kRequest.substr(0, 40), kRequest.substr(40)},
             kChangeCipherSpec + kFinished12, {100}),
        request},
       2,
       2},
      {"TLS 1.2, such a request, and a reply in the send that ends the handshake",
       {hello,
        says({kKeyExchange + kChangeCipherSpec + kFinished12 + kRequest}, kChangeCipherSpec + kFinished12 + kRequest),
        request},
       1,
       2},
      {"TLS 1.2, a short key exchange and no request",
       {hello, says({kKeyExchange + kChangeCipherSpec + kFinished12}, kTicket12, {6, 45}), request},
       2,
       1},
      {"TLS 1.2, a certificate and no request, the server greets or says goodbye",
       {hello,
        says({kCertificate12 + kKeyExchange + kVerify12 + kChangeCipherSpec + kFinished12}, kTicket12, {6, 45, 31})},
       2,
       0},
      {"TLS 1.2, no certificate though one was asked for, and no request",
       {hello, says({kNoCertificate12 + kKeyExchange, kChangeCipherSpec + kFinished12}, kChangeCipherSpec + kFinished12,
                    {31})},
       2,
       0},
      {"TLS 1.2, a certificate, and a request right behind it",
       {hello,
        says({kCertificate12 + kKeyExchange + kVerify12 + kChangeCipherSpec + kFinished12 + kRequest},
             kChangeCipherSpec + kFinished12, {100}),
        request},
       2,
       2},
      {"TLS 1.2, a goodbye right behind the client's part of the handshake",
       {hello, says({kKeyExchange + kChangeCipherSpec + kFinished12 + kAlert}, kChangeCipherSpec + kFinished12)},
       2,
       0},
      {"TLS 1.3, new keys that the client asks for look like a request and its reply",
       {hello, flight, request, says({kKeyUpdate}, kKeyUpdate), request},
       2,
       3},
      {"the end of early data", {hello, {{kEndOfEarlyData + kLongFinished}, 100}, request}, 2, 1},
      {"early data, answered before the handshake is over",
       {{{early}, 100, {160}}, {{kEndOfEarlyData + kLongFinished}, 255}, request},
       2,
       2},
      {"early data, answered in pieces",
       {{{early.substr(0, 5), early.substr(5)}, 100, {160, 1400}}, {{kEndOfEarlyData + kLongFinished}, 255}, request},
       2,
       2},
      {"early data that comes behind the server's answer to the hello",
       {hello, {{kChangeCipherSpec + kRequest}, 160}, {{kEndOfEarlyData + kLongFinished}, 255}, request},
       2,
       2},
      {"early data that is read to its end before it is answered",
       {hello, {{kRequest + kEndOfEarlyData}, 160, {1400, 1400}}, {{kLongFinished}, 255}, request, request},
       1,
       3},
      {"early data that is read to its end, in pieces, and a certificate behind it",
       {hello,
        {{kRequest.substr(0, 5), kRequest.substr(5), kRequest, kEndOfEarlyData}, 160},
        {{kCertificate + kVerify + kLongFinished}, 255},
        request},
       1,
       2},
      {"early data, answered when the handshake is over",
       {{{early}, 100}, {{kEndOfEarlyData + kLongFinished}, 255, {180}}, request},
       1,
       2},
      {"early data that is refused", {{{early}, 100}, {{kLongFinished}, 255, {255}}, request}, 2, 1},
      {"early data that is refused, and a long certificate",
       {{{early}, 4096, {1300}}, {{kLongFinished}, 255, {255}}, request},
       2,
       1},
      {"a goodbye right behind the flight", {hello, {{kChangeCipherSpec + kFinished + kShort}, 24}}, 2, 0},
      {"a goodbye that is answered with tickets and a goodbye (BoringSSL)",
       {hello, flight, says({kShort}, tickets + kShort)},
       2,
       0},
      {"a first request as short as a goodbye is one when another follows",
       {hello, flight, says({kShort}, tickets + kShort), request},
       2,
       2},
      {"a goodbye right behind the flight, tickets come back",
       {hello, {{kChangeCipherSpec + kLongFinished + kShort}, 255}},
       2,
       0},
      {"tickets are sent while a request is still on its way",
       {hello, {{asks + begun}, 255, {255}}, {{rest}, 100}, request},
       2,
       2},
      {"tickets are sent before the body of a request comes",
       {hello, {{asks}, 255, {255}}, {{kRequest}, 100}, request},
       1,
       2},
      {"a request is refused before it has come, behind tickets",
       {hello, {{asks + begun}, 255, {255, 180}}, {{rest, kRequest}, 100}},
       2,
       2},
      {"tickets are sent before the reply", {hello, {{asks}, 255, {255, 180}}, request}, 1, 2},
      {"a ticket is sent before the reply", {hello, {{asks}, 255, {180, 180}}, request}, 1, 2},
      {"behind a proxy's line", {{{kProxyLine, kHello}, 100}, flight, request}, 2, 1},
      {"behind a proxy's line, read at once", {{{kProxyLine + kHello}, 100}, flight, request}, 2, 1},
      {"behind a proxy's header", {{{kProxyHeader, kHello}, 100}, flight, request}, 2, 1},
      {"behind a proxy's header, read at once", {{{kProxyHeader + kHello}, 100}, flight, request}, 2, 1},
      {"a proxy's line and no TLS", {{{kProxyLine, plain}, 100}, {{plain}, 100}}, 0, 2},
      {"a proxy's header alone: the server speaks first", {{{kProxyHeader}, 100}, {{plain}, 100}}, 0, 1},
      {"a proxy's line and no TLS, read at once", {{{kProxyLine + plain}, 100}}, 0, 1},
      {"behind MySQL's wish for it",
       {{{kWish.substr(0, 4), kWish.substr(4), kHello.substr(0, 5), kHello.substr(5)}, 100}, flight, request},
       2,
       1},
      {"behind MySQL's wish for it, read at once", {{{kWish + kHello}, 100}, flight, request}, 2, 1},
      {"a message like MySQL's wish and no TLS", {{{kWish.substr(0, 4), kWish.substr(4)}, 100}, {{plain}, 100}}, 0, 2},
      {"TLS 1.3, a last message without a reply, and a goodbye that is not read",
       {hello, flight, request, {{kRequest}, kShort.size(), {}, kShort, kShort}},
       2,
       1,
       1},
      {"TLS 1.3, a last message without a reply, and a goodbye that is read",
       {hello, flight, request, says({kRequest, kShort.substr(0, 5), kShort.substr(5)}, kShort)},
       2,
       1,
       1},
      {"TLS 1.3, a last message as short as the goodbye behind it",
       {hello, flight, request, says({kShort, kShort}, kShort)},
       2,
       1},
      {"TLS 1.2, a last message without a reply, and a goodbye",
       {hello, key_exchange, request, says({kRequest}, kAlert)},
       2,
       1,
       1},
      {"a short reply is one, also the last", {hello, flight, says({kRequest}, kShort)}, 2, 1},
      {"short replies are replies when the connection goes on",
       {hello, flight, says({kRequest}, kShort), says({kRequest}, kShort), request},
       2,
       3},
      {"a reply that begins with a short piece is one", {hello, flight, says({kRequest}, kShort, {100})}, 2, 1},
      {"a hello of SSL 3 looks like the length of a packet of MySQL's", {{{kOldHello}, 7}}, 0, 1},
      {"a goodbye to Java, which answers with two", {hello, flight, request, {{kShort}, 40, {40}}}, 2, 1},
      {"a goodbye of Java, which are two", {hello, padded_flight, request, {{kPadded + kPadded}, 24}}, 2, 1},
      {"a goodbye of Java, read in pieces",
       {hello,
        padded_flight,
        request,
        {{kPadded.substr(0, 5), kPadded.substr(5), kPadded.substr(0, 5), kPadded.substr(5)}, 24}},
       2,
       1},
      {"a goodbye of Java to Java", {hello, padded_flight, request, {{kPadded + kPadded}, 40, {40}}}, 2, 1},
      {"half a goodbye of Java, which goes on reading", {hello, padded_flight, request, {{kPadded}, 24}}, 2, 1},
      {"a goodbye of Java that is not answered", {hello, padded_flight, request, {{kPadded + kPadded}, 0}}, 2, 1},
      {"a goodbye of Java right behind the flight",
       {hello, {{kChangeCipherSpec + kPaddedFinished + kPadded + kPadded}, 255}},
       2,
       0},
      {"a certificate of Java",
       {hello, {{kChangeCipherSpec + kCertificate + kVerify + kPaddedFinished}, 100}, request},
       2,
       1},
      {"requests as long as a goodbye of Java are requests when others follow",
       {hello, flight, {{kPadded}, 24}, {{kPadded}, 40}, {{kPadded}, 100}, request},
       2,
       4},
      {"a last message to which Java gets no reply, and a goodbye",
       {hello, padded_flight, request, says({kRequest, kPadded, kPadded}, kShort)},
       2,
       1,
       1},
  };
  return all;
}

}  // namespace

TEST_CASE("goodbyes of TLS are no requests, nor is a handshake behind a proxy's header") {
  for (const Life& life : lives()) {
    CAPTURE(life.name);
    play(life, Watched());
  }
}

TEST_CASE("what a client asks right behind its certificate is no second request at a time") {
  const Watched where;
  const std::string flight = kChangeCipherSpec + kCertificate + kVerify + kFinished;
  constexpr std::size_t kAnswer = 100;
  Child server(where.directory(), [&flight](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = accept_from(listener);
      serve(connection, 1, kHello.size(), kAnswer);
      receive_once(connection, flight.size());
      parent.tell();
      (void)parent.hear();  // the request has come
      send_once(connection, kAnswer);
      serve(connection, 1, kRequest.size(), kAnswer);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  const auto send_all = [](const UniqueFd& client, const std::string& data) { send_bytes(client, data); };
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd client = connect_tcp(port);
    send_all(client, kHello);
    receive_once(client, kAnswer);
    send_all(client, flight);
    (void)server.hear();
    send_all(client, kRequest);
    server.tell();
    receive_once(client, 2 * kAnswer);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kConnections);
  CHECK(where.value("tacho_handshakes_total") == 2 * kConnections);
  CHECK(where.value("tacho_multiplexed_connections_total") == 0);
  server.tell();
  server.finish();
}

TEST_CASE("a goodbye that a server says before it has the client's is no reply") {
  const Watched where;
  const std::string flight = kChangeCipherSpec + kFinished;
  constexpr std::size_t kAnswer = 100;
  // Whether the client says goodbye before it closes, and whether the server reads to the end.
  const bool says_goodbye = GENERATE(true, false);
  const bool reads = GENERATE(true, false);
  CAPTURE(says_goodbye, reads);
  Child server(where.directory(), [&flight, reads](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = accept_from(listener);
      serve(connection, 1, kHello.size(), kAnswer);
      serve(connection, 1, flight.size(), kAnswer);
      serve(connection, 1, kRequest.size(), kAnswer);
      receive_once(connection, kRequest.size());
      send_bytes(connection, kShort);
      parent.tell();
      (void)parent.hear();  // the client has closed
      std::array<char, kAnswer> rest{};
      while (reads && ::read(connection.get(), rest.data(), rest.size()) > 0) {
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < kConnections; ++i) {
    UniqueFd client = connect_tcp(port);
    for (const std::string& data : {kHello, flight, kRequest}) {
      send_bytes(client, data);
      receive_once(client, kAnswer);
    }
    send_bytes(client, kRequest);
    (void)server.hear();
    receive_once(client, kShort.size());
    if (says_goodbye) {
      send_bytes(client, kShort);
    }
    client.reset();
    server.tell();
  }
  (void)server.hear();
  // Who reads on has replied, and waits for more. Where the client says nothing either, nobody knows.
  const bool replied = reads || !says_goodbye;
  CHECK(where.value("tacho_requests_total") == (replied ? 2 : 1) * kConnections);
  CHECK(where.value("tacho_requests_unanswered_total") == (replied ? 0 : 1) * kConnections);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
}
