// Message brokers: what a subscriber says to what it was delivered gets no reply, whatever is delivered next. So it is
// with what keeps a WebSocket alive.

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::string_literals;

namespace {

constexpr int kDeliveries = 11;
constexpr std::size_t kDelivery = 40;
constexpr std::size_t kReply = 20;

struct Protocol {
  std::string name;
  std::string greeting;
  std::string question;  ///< gets a reply
  std::string acknowledgement;
  bool told;
  bool whole = false;  ///< no server of it reads byte by byte
};

const std::string kUpgrade = "GET /chat HTTP/1.1\r\nUpgrade: websocket\r\n\r\n";

std::string amqp_frame(char type, const std::string& payload) {
  return ""s + type + "\0\1"s + "\0\0\0"s + static_cast<char>(payload.size()) + payload + '\xce';
}

std::string amqp_method(char of_class, char method) {
  return amqp_frame(1, "\0"s + of_class + "\0"s + method + std::string(9, '\0'));
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) {
    all += text;
  }
  return all;
}

std::vector<Protocol> protocols() {
  const std::string mqtt_greeting = "\x10\x0c\0\4MQTT\4\2\0\x3c\0\0"s;
  const std::string nats_greeting = "CONNECT {\"verbose\":false}\r\nPING\r\n";
  const std::string nats_subscribe = "SUB a 1\r\nPING\r\n";
  const std::string amqp_message = amqp_method(60, 40) + amqp_frame(2, std::string(14, 'h')) + amqp_frame(3, "hi");
  const std::string subscribe = "\x82\x06\0\1\0\1a\1"s;
  const std::string puback = "\x40\2\0\7"s;
  const std::string message = "\x81\x85maskhello"s;
  return {
      {"MQTT", "\x10\x0c\0\4MQTT\4\2\0\x3c\0\0"s, subscribe, puback, true},
      {"MQTT 3.1", "\x10\x0e\0\6MQIsdp\3\2\0\x3c\0\0"s, subscribe, puback, true},
      {"MQTT, a long greeting", "\x10\x8d\1\0\4MQTT\4\2\0\x3c"s + std::string(131, 'i'), subscribe, puback, true},
      {"MQTT, several at once", "\x10\x0c\0\4MQTT\4\2\0\x3c\0\0"s, subscribe, puback + puback, true},
      {"MQTT, received and released", mqtt_greeting, subscribe, "\x50\2\0\7"s, true},
      {"MQTT, what is published without a reply", mqtt_greeting, subscribe, "\x30\x05\0\1ahi"s, true},
      {"MQTT, what is published and acknowledged", mqtt_greeting, subscribe, "\x32\x07\0\1a\0\1hi"s, false},
      {"MQTT, a long message, then a question", mqtt_greeting, subscribe,
       "\x30\x84\x02\0\1a"s + std::string(257, '\xc0') + "\xc0\0"s, false},
      {"NATS, pongs", nats_greeting, nats_subscribe, "PONG\r\n", true, true},
      {"NATS, what a service answers", nats_greeting, nats_subscribe, "PUB _INBOX.a.7  8\r\nPING\r\nab\r\n", true,
       true},
      {"NATS, headers", nats_greeting, nats_subscribe, "HPUB _INBOX.a.7 12 14\r\nNATS/1.0\r\n\r\nab\r\n", true, true},
      {"NATS, requests", nats_greeting, nats_subscribe, "PUB service _INBOX.b.7 2\r\nhi\r\n", false, true},
      {"NATS, requests with headers", nats_greeting, nats_subscribe,
       "PUB news 2\r\nhi\r\nHPUB service _INBOX.b.7 12 14\r\nNATS/1.0\r\n\r\nhi\r\n", false, true},
      {"AMQP, what is published", "AMQP\0\0\x09\1"s, amqp_method(10, 40), amqp_message + amqp_method(60, 80), true},
      {"AMQP, what is published and confirmed", "AMQP\0\0\x09\1"s, amqp_method(85, 10), amqp_message, false},
      {"AMQP", "AMQP\0\0\x09\1"s, amqp_frame(1, "\0\x14\0\x0a"s + std::string(30, 'a')),
       amqp_frame(1, "\0\x3c\0\x50"s + std::string(9, '\0')), true},
      {"MQTT, a hundred messages, then a question", mqtt_greeting, subscribe,
       repeated("\x30\x05\0\1ahi"s, 100) + "\xc0\0"s, false},
      {"MQTT, long messages, then a question", mqtt_greeting, subscribe,
       repeated("\x30\x84\x02\0\1a"s + std::string(257, '\xc0'), 20) + "\xc0\0"s, false},
      {"MQTT, acknowledgements by the hundred", mqtt_greeting, subscribe, repeated(puback, 300), true},
      {"NATS, a hundred messages, then a question", nats_greeting, nats_subscribe,
       repeated("PUB news 2\r\nhi\r\n", 100) + "PUB service _INBOX.b.7 2\r\nhi\r\n", false, true},
      {"AMQP, a hundred messages, then a question", "AMQP\0\0\x09\1"s, amqp_method(10, 40),
       repeated(amqp_message, 100) + amqp_method(60, 20), false},
      {"AMQP, acknowledgements by the hundred", "AMQP\0\0\x09\1"s, amqp_method(10, 40),
       repeated(amqp_method(60, 80), 100), true},
      {"WebSocket, pongs by the hundred, then a question", kUpgrade, message,
       repeated("\x8a\x84mask1234"s, 100) + message, false},
      {"WebSocket, pongs", kUpgrade, message, "\x8a\x84mask1234"s, true},
      {"WebSocket, empty pongs", kUpgrade, message, "\x8a\x80mask"s, true},
      {"WebSocket, the client's pings", kUpgrade, message, "\x89\x84mask1234"s, true},
      {"WebSocket, pongs of Engine.IO", kUpgrade, message, "\x81\x81mask"s + static_cast<char>('3' ^ 'm'), true},
      {"WebSocket, a ping behind a pong", kUpgrade, message, "\x8a\x84mask1234\x89\x80mask"s, true},
      {"WebSocket, two pings", kUpgrade, message, "\x89\x82maskab\x89\x82maskcd"s, true},
      {"WebSocket, the end", kUpgrade, message, "\x88\x82mask\x6e\x89"s, true},
      {"WebSocket, an end without a reason", kUpgrade, message, "\x88\x80mask"s, true},
      {"WebSocket, a message behind a pong", kUpgrade, message, "\x8a\x84mask1234"s + message, false},
      {"WebSocket, a pong behind a message", kUpgrade, message, message + "\x8a\x84mask1234"s, false},
      {"WebSocket, a message in two fragments", kUpgrade, message, "\x01\x82maskhe\x80\x83maskllo"s, false},
      {"WebSocket, a message of the length of a pong's beginning", kUpgrade,
       "\x82\xfe\0\x82mask"s + std::string(130, '\x8a'), "\x8a\x84mask1234"s, true},
      {"WebSocket, a message that holds what looks like pongs", kUpgrade, message,
       "\x82\xff\0\0\0\0\0\0\1\4mask"s + std::string(260, '\x8a'), false},
      {"WebSocket, answers of the application", kUpgrade, message, "\x81\x81mask3"s, false},
      {"another protocol that begins so", "hello"s + kUpgrade, message, "\x8a\x84mask1234"s, false},
      {"another protocol", "hello brok"s, subscribe, puback, false},
  };
}

/// Receives it as a whole, or byte by byte.
void take(const UniqueFd& connection, std::size_t size, bool bytewise) {
  for (std::size_t i = 0; bytewise && i < size; ++i) {
    receive_once(connection, 1);
  }
  if (!bytewise) {
    receive_once(connection, size);
  }
}

void say(const UniqueFd& client, const std::string& text) {
  must(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()), "send");
}

}  // namespace

TEST_CASE("what a broker's subscribers acknowledge are messages, what they ask are requests") {
  const Protocol protocol = GENERATE(from_range(protocols()));
  const bool bytewise = GENERATE(false, true) && !protocol.whole;
  CAPTURE(protocol.name, bytewise);
  const Watched where;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line&) {
    for (const std::string& asked : {protocol.greeting, protocol.question}) {
      take(connection, asked.size(), bytewise);
      send_once(connection, kReply);
    }
    for (int i = 0; i < kDeliveries; ++i) {
      send_once(connection, kDelivery);
      take(connection, protocol.acknowledgement.size(), bytewise);
    }
    send_once(connection, kDelivery);
    take(connection, protocol.question.size(), bytewise);
    send_once(connection, kReply);
  });
  const UniqueFd client = connect_to(server);
  for (const std::string& asked : {protocol.greeting, protocol.question}) {
    say(client, asked);
    receive_once(client, kReply);
  }
  for (int i = 0; i < kDeliveries; ++i) {
    receive_once(client, kDelivery);
    say(client, protocol.acknowledgement);
  }
  receive_once(client, kDelivery);
  say(client, protocol.question);
  receive_once(client, kReply);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 3 + (protocol.told ? 0 : kDeliveries));
  // What keeps a WebSocket alive is no message either.
  const bool messages = protocol.told && protocol.greeting != kUpgrade;
  CHECK(where.value("tacho_oneway_messages_total") == (messages ? kDeliveries : 0));
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  close_connection(server);
  finish(server);
}

TEST_CASE("a broker and a WebSocket are told behind a proxy's header, too, read with the first message or by itself") {
  const Protocol protocol =
      GENERATE(filter([](const Protocol& each) { return each.name == "MQTT" || each.name == "WebSocket, pongs"; },
                      from_range(protocols())));
  const bool apart = GENERATE(false, true);
  const std::string header = GENERATE("PROXY TCP4 192.0.2.1 192.0.2.2 12345 80\r\n"s, "PROXY UNKNOWN\r\n"s,
                                      "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"s + std::string(12, 'a'));
  CAPTURE(protocol.name, apart, header);
  const Watched where;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line&) {
    if (apart) {
      receive_once(connection, header.size());
    }
    receive_once(connection, protocol.greeting.size() + (apart ? 0 : header.size()));
    send_once(connection, kReply);
    for (int i = 0; i < kDeliveries; ++i) {
      send_once(connection, kDelivery);
      receive_once(connection, protocol.acknowledgement.size());
    }
    send_once(connection, kDelivery);
  });
  const UniqueFd client = connect_to(server);
  say(client, header + protocol.greeting);
  receive_once(client, kReply);
  for (int i = 0; i < kDeliveries; ++i) {
    receive_once(client, kDelivery);
    say(client, protocol.acknowledgement);
  }
  receive_once(client, kDelivery);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 1);
  close_connection(server);
  finish(server);
}

TEST_CASE("a WebSocket is told by its first frame within five requests behind the connection's first GET, not later") {
  const int requests = GENERATE(1, 5, 6);
  CAPTURE(requests);
  const std::string pong = "\x8a\x84mask1234"s;
  const Watched where;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line&) {
    for (int i = 0; i < requests; ++i) {
      receive_once(connection, kUpgrade.size());
      send_once(connection, kReply);
    }
    for (int i = 0; i < kDeliveries; ++i) {
      send_once(connection, kDelivery);
      receive_once(connection, pong.size());
    }
    send_once(connection, kDelivery);
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < requests; ++i) {
    say(client, kUpgrade);
    receive_once(client, kReply);
  }
  for (int i = 0; i < kDeliveries; ++i) {
    receive_once(client, kDelivery);
    say(client, pong);
  }
  receive_once(client, kDelivery);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == requests + (requests <= 5 ? 0 : kDeliveries));
  close_connection(server);
  finish(server);
}

TEST_CASE("what is acknowledged on a connection that is older than tacho looks like a request") {
  const Protocol protocol = GENERATE(filter([](const Protocol& each) { return each.told; }, from_range(protocols())));
  CAPTURE(protocol.name);
  const Cgroup cgroup(playground() + "/" + unique_name());
  Child server = server_that(cgroup.directory(), [&](const UniqueFd& connection, Line& parent) {
    receive_once(connection, protocol.greeting.size());
    send_once(connection, kReply);
    parent.tell();
    (void)parent.hear();
    for (int i = 0; i < kDeliveries; ++i) {
      send_once(connection, kDelivery);
      receive_once(connection, protocol.acknowledgement.size());
    }
    send_once(connection, kDelivery);
  });
  const UniqueFd client = connect_to(server);
  say(client, protocol.greeting);
  receive_once(client, kReply);
  (void)server.hear();
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  Running tacho(config);
  server.tell();
  for (int i = 0; i < kDeliveries; ++i) {
    receive_once(client, kDelivery);
    say(client, protocol.acknowledgement);
  }
  receive_once(client, kDelivery);
  (void)server.hear();
  CHECK(tacho.page().value("tacho_requests_total") == kDeliveries);
  close_connection(server);
  finish(server);
}
