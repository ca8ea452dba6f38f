// Signs of life: what a server sends to see whether its client still is there, and the client's echo, are no requests.

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

/// One says so much after a pause, and the other receives it. A server may read the first bytes by themselves.
struct Said {
  bool by_server;
  std::string text;
  std::chrono::milliseconds after = 0ms;
  std::size_t header = 0;
};

struct Life {
  std::string name;
  std::vector<Said> said;
  int requests;
  bool slow = false;  ///< one of them takes a server's pause
};

constexpr auto kSilence = 1100ms;
constexpr auto kSoon = 100ms;
constexpr auto kPause = 600ms;
constexpr std::size_t kSecret = 17;  ///< what TLS 1.3 adds to a record's length
constexpr std::size_t kMask = 4;

Said asks(const std::string& text, std::chrono::milliseconds after = 0ms, std::size_t header = 0) {
  return {.by_server = false, .text = text, .after = after, .header = header};
}

Said sends(const std::string& text, std::chrono::milliseconds after = 0ms) {
  return {.by_server = true, .text = text, .after = after};
}

std::string secret(std::size_t bytes) {
  return record(23, std::string(bytes + kSecret, 's'));
}

/// A handshake under TLS 1.3 and a request, then that, then another request.
std::vector<Said> under_tls(const std::vector<Said>& between) {
  std::vector<Said> said = {asks(kHello),
                            sends(kServerHello + kRequest),
                            asks(kChangeCipherSpec + kFinished),
                            sends(kRequest),
                            asks(secret(200)),
                            sends(secret(150))};
  said.insert(said.end(), between.begin(), between.end());
  said.push_back(asks(secret(200)));
  said.push_back(sends(secret(150)));
  return said;
}

std::vector<Said> in_the_clear(const std::vector<Said>& between) {
  std::vector<Said> said = {asks("NICK someone\r\n"), sends("001 welcome\r\n")};
  said.insert(said.end(), between.begin(), between.end());
  said.push_back(asks("VERSION\r\n"));
  said.push_back(sends("351 of today\r\n"));
  return said;
}

std::vector<Life> lives() {
  const std::string ping = secret(2 + 4);
  const std::string pong = secret(2 + kMask + 4);
  const std::string event = secret(300);
  return {
      {"WebSocket",
       under_tls({sends(ping, kSilence), asks(pong), sends(ping, kSilence), asks(pong), sends(event, kSilence)}), 2},
      {"a header is read by itself", under_tls({sends(ping, kSilence), asks(pong, 0ms, 5), sends(event, kSilence)}), 2},
      {"empty pings", under_tls({sends(secret(2), kSilence), asks(secret(2 + kMask)), sends(event, kPause)}), 2},
      {"an echo, then a message",
       under_tls({sends(ping, kSilence), asks(pong), asks(secret(70), kPause), sends(event)}), 3},
      {"as long as what it echoes", under_tls({sends(ping, kSilence), asks(ping), sends(ping, kSilence)}), 2},
      {"IRC", in_the_clear({sends("PING :me\r\n", kSilence), asks("PONG :me\r\n"), sends("PING :me\r\n", kSilence)}),
       2},
      {"a request of that length that is answered", under_tls({sends(ping, kSilence), asks(pong), sends(event)}), 3},
      {"behind an event that came soon", under_tls({sends(ping, kSoon), asks(pong), sends(event, kPause)}), 3, true},
      {"of another length", under_tls({sends(ping, kSilence), asks(event), sends(event, kPause)}), 3, true},
      {"behind a greeting that is as long",
       {sends("220 here\r\n"), asks("EHLO you\r\n"), sends("250 welcome\r\n", kPause)},
       1,
       true},
      {"too long", under_tls({sends(secret(150), kSilence), asks(secret(150)), sends(event, kPause)}), 3, true},
  };
}

}  // namespace

TEST_CASE("what echoes a sign of life is no request, nor in flight") {
  for (const Life& life : lives()) {
    CAPTURE(life.name);
    const Watched where;
    Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line&) {
      for (const auto& [by_server, text, after, header] : life.said) {
        if (by_server) {
          std::this_thread::sleep_for(after);
          send_bytes(connection, text);
        } else {
          if (header > 0) {
            receive_once(connection, header);
          }
          receive_once(connection, text.size() - header);
        }
      }
    });
    const UniqueFd client = connect_to(server);
    for (const auto& [by_server, text, after, header] : life.said) {
      if (by_server) {
        receive_once(client, text.size());
      } else {
        std::this_thread::sleep_for(after);
        send_bytes(client, text);
      }
    }
    (void)server.hear();
    CHECK(where.value("tacho_requests_total") == life.requests);
    CHECK(where.value("tacho_oneway_messages_total") == 0);
    CHECK(where.value("tacho_requests_in_flight") == 0);
    CHECK(where.value("tacho_requests_unanswered_total") == 0);
    const bool slow = where.sum("tacho_request_duration_seconds") > 0.4;
    CHECK(slow == life.slow);
    close_connection(server);
    finish(server);
  }
}

TEST_CASE("while nothing follows a sign's echo, nothing is in flight") {
  const Watched where;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line& parent) {
    receive_once(connection, 20);
    send_once(connection, 30);
    std::this_thread::sleep_for(kSilence);
    send_once(connection, 10);
    receive_once(connection, 10);
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_to(server);
  send_once(client, 20);
  receive_once(client, 30);
  receive_once(client, 10);
  send_once(client, 10);
  (void)server.hear();
  CHECK(where.value("tacho_requests_in_flight") == 0);
  server.tell();
  (void)server.hear();
  close_connection(server);
  finish(server);
  CHECK(where.value("tacho_requests_total") == 1);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
}
