// What ordinary protocols say to and fro, and how much of it are requests.

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::string_literals;

namespace {

constexpr int kConnections = 7;

/// Somebody sends, and the other one reads it by one call.
struct Words {
  bool by_server;
  std::string text;
};

Words client(std::string text) {
  return {false, std::move(text)};
}
Words server(std::string text) {
  return {true, std::move(text)};
}

struct Dialogue {
  std::string name;
  std::vector<Words> words;
  int requests;
  int handshakes = 0;
  int unanswered = 0;
};

const std::string kEncrypted = record(23, std::string(140, 'a'));

/// TLS 1.3, and so many requests.
std::vector<Words> under_tls(std::vector<Words> before, int requests) {
  before.insert(before.end(), {client(kHello), server(kServerHello + kChangeCipherSpec + kEncrypted),
                               client(kChangeCipherSpec + kFinished), server(kEncrypted)});
  for (int i = 0; i < requests; ++i) {
    before.insert(before.end(), {client(kRequest), server(kEncrypted)});
  }
  return before;
}

std::vector<Dialogue> dialogues() {
  const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 400\r\n\r\n";
  const std::string chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
  const std::string too_large = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
  return {
      {"SMTP",
       {server("220 hello\r\n"), client("EHLO a\r\n"), server("250 hello\r\n"), client("QUIT\r\n"),
        server("221 bye\r\n")},
       2},
      {"SMTP, STARTTLS",
       under_tls({server("220 hello\r\n"), client("EHLO a\r\n"), server("250 STARTTLS\r\n"), client("STARTTLS\r\n"),
                  server("220 go ahead\r\n")},
                 3),
       5, 2},
      {"IMAP, STARTTLS",
       under_tls({server("* OK hello\r\n"), client("a1 CAPABILITY\r\n"), server("* CAPABILITY STARTTLS\r\n"),
                  client("a2 STARTTLS\r\n"), server("a2 OK\r\n")},
                 3),
       5, 2},
      {"IMAP, IDLE",
       {server("* OK hello\r\n"), client("a1 LOGIN a b\r\n"), server("a1 OK\r\n"), client("a2 IDLE\r\n"),
        server("+ idling\r\n"), server("* 1 EXISTS\r\n"), server("* 2 EXISTS\r\n"), client("DONE\r\n"),
        server("a2 OK\r\n")},
       3},
      {"IMAP, what an APPEND brings is asked for",
       {server("* OK hello\r\n"), client("a1 APPEND INBOX {5}\r\n"), server("+ go ahead\r\n"), client("hello\r\n"),
        server("a1 OK\r\n")},
       2},
      {"MySQL, LOAD DATA LOCAL",
       {server(std::string(90, 'g')), client(std::string(80, 'l')), server("\7\0\0\2\0\0\0\2\0\0\0"s),
        client("\x1a\0\0\0\3LOAD DATA LOCAL INFILE 'a'"s), server("\2\0\0\1\xfb"s + "a"),
        client("\4\0\0\2data\0\0\0\3"s), server("\7\0\0\4\0\0\0\2\0\0\0"s)},
       3},
      {"FTP",
       {server("220 hello\r\n"), client("USER a\r\n"), server("331 who?\r\n"), client("PASS b\r\n"),
        server("230 ok\r\n"), client("RETR c\r\n"), server("150 here it comes\r\n"), server("226 done\r\n")},
       3},
      {"an upload of FTP by a connection of its own", {client(std::string(4000, 'd'))}, 0, 0, 1},
      {"a download of FTP by a connection of its own", {server(std::string(4000, 'd'))}, 0},
      {"a proxy is asked to connect, then TLS",
       under_tls({client("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"), server("HTTP/1.1 200 OK\r\n\r\n")}, 3), 4,
       2},
      {"HTTP/1.0", {client("GET / HTTP/1.0\r\n\r\n"), server("HTTP/1.0 200 OK\r\n\r\n"), server("all of it")}, 1},
      {"early hints",
       {client(get), server("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"), server(ok), client(get), server(ok)},
       2},
      {"a body in chunks, with a trailer",
       {client(chunked), client("5\r\nhello\r\n"), client("5\r\nagain\r\n"), client("0\r\nDigest: a\r\n\r\n"),
        server(ok), client(get), server(ok)},
       2},
      {"refused before the body was read, which then is",
       {client(post), server(too_large), client(std::string(400, 'b')), client(get), server(ok)},
       2},
      {"an empty line behind a body",
       {client(post + std::string(400, 'b')), server(ok), client("\r\n"), client(get), server(ok)},
       2},
      {"redis, a subscriber that pings",
       {client("*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n"), server("*3 subscribe"), server("*3 message"),
        client("*1\r\n$4\r\nPING\r\n"), server("*2 pong"), server("*3 message")},
       2},
      {"HTTP/1.1 that goes on as WebSocket, which the server ends",
       {client("GET /chat HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"), server("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        server("\x81\5hello"s), client("\x81\x85maskhello"s), server("\x81\5there"s), server("\x88\2\3\xe8"s),
        client("\x88\x82mask\x6e\x89"s)},
       2},
      {"HTTP/1.1 that goes on as WebSocket, which the client ends",
       {client("GET /chat HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"), server("HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        client("\x81\x85maskhello"s), server("\x81\5there"s), client("\x88\x82mask\x6e\x89"s), server("\x88\2\3\xe8"s)},
       2},
  };
}

void lead(const Dialogue& dialogue) {
  CAPTURE(dialogue.name);
  const Watched where;
  Child child(where.directory(), [&dialogue](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = accept_from(listener);
      for (const auto& [by_server, text] : dialogue.words) {
        if (by_server) {
          send_bytes(connection, text);
        } else {
          receive_once(connection, text.size());
          parent.tell();
        }
      }
      parent.tell();
    }
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(child.hear());
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd connection = connect_tcp(port);
    for (const auto& [by_server, text] : dialogue.words) {
      if (by_server) {
        receive_once(connection, text.size());
      } else {
        send_bytes(connection, text);
        (void)child.hear();
      }
    }
    (void)child.hear();
  }
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
  CHECK(where.value("tacho_requests_total") == kConnections * dialogue.requests);
  CHECK(where.value("tacho_handshakes_total") == kConnections * dialogue.handshakes);
  CHECK(where.value("tacho_requests_unanswered_total") == kConnections * dialogue.unanswered);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_multiplexed_connections_total") == 0);
  child.tell();
  child.finish();
}

}  // namespace

TEST_CASE("dialogues of ordinary protocols have as many requests as the server is asked something") {
  for (const Dialogue& dialogue : dialogues()) {
    lead(dialogue);
  }
}
