// HTTP's interim responses: what answers "Expect: 100-continue" is no reply, and no answer of a call.

#include <sys/socket.h>

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

constexpr int kUploads = 11;
/// Longer than the pause that ends a turn without a reply.
constexpr auto kPause = 700ms;

const std::string kHead = "PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\nExpect: 100-continue\r\n\r\n";
const std::string kBody(40, 'b');
const std::string kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
const std::string kReply = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";

/// What the client sends and the server answers, one after the other.
struct Exchange {
  std::string asks;
  std::string answer;
};

/// What is said on a connection, so many times; how many of it are requests.
struct Upload {
  std::string name;
  std::vector<Exchange> exchanges;
  int requests;
  std::chrono::milliseconds pause = 0ms;  ///< before each but the first
};

std::vector<Upload> uploads() {
  return {
      {"a head, then a body", {{kHead, kContinue}, {kBody, kReply}}, 1},
      {"without a reason", {{kHead, "HTTP/1.1 100 \r\n\r\n"}, {kBody, kReply}}, 1},
      {"it takes its time", {{kHead, "HTTP/1.1 102 Processing\r\n\r\n"}, {kBody, kReply}}, 1},
      {"the body comes late", {{kHead, kContinue}, {kBody, kReply}}, 1, kPause},
      {"a body in two pieces", {{kHead, kContinue}, {kBody.substr(0, 20), kContinue}, {kBody.substr(20), kReply}}, 1},
      {"refused", {{kHead, "HTTP/1.1 417 Expectation\r\n\r\n"}, {kHead, kReply}}, 2},
      {"another protocol is switched to", {{kHead, "HTTP/1.1 101 Switching\r\n\r\n"}, {kBody, kReply}}, 2},
      {"the reply in the same send", {{kHead, kContinue + "HTTP/1.1 204 \r\n\r\n"}, {kHead, kReply}}, 2},
      {"a reply that is as long", {{kHead, std::string(kContinue.size(), 'r')}, {kBody, kReply}}, 2},
  };
}

/// Lives it so many times on one connection.
void live(const Upload& upload, int times) {
  CAPTURE(upload.name);
  const Watched where;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line&) {
    for (int i = 0; i < times; ++i) {
      for (const auto& [asks, answer] : upload.exchanges) {
        receive_once(connection, asks.size());
        send_bytes(connection, answer);
      }
    }
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < times; ++i) {
    for (const auto& [asks, answer] : upload.exchanges) {
      if (&asks != &upload.exchanges.front().asks) {
        std::this_thread::sleep_for(upload.pause);
      }
      send_bytes(client, asks);
      receive_once(client, answer.size());
    }
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == times * upload.requests);
  CHECK(where.value("tacho_oneway_messages_total") == 0);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  CHECK(where.sum("tacho_request_duration_seconds") < std::chrono::duration<double>(kPause).count() / 2);
  CHECK(where.value("tacho_multiplexed_connections_total") == 0);
  close_connection(server);
  finish(server);
}

}  // namespace

TEST_CASE("an interim response of HTTP is no reply, however long the rest of the request takes") {
  for (const Upload& upload : uploads()) {
    live(upload, upload.pause > 0ms ? 1 : kUploads);
  }
}

TEST_CASE("under TLS an interim response of HTTP looks like any reply") {
  const std::string interim = record(23, std::string(kContinue.size() + 17, 'c'));
  live({"TLS 1.3",
        {{kHello, kServerHello + kRequest},
         {kChangeCipherSpec + kFinished, kRequest},
         {kRequest, interim},
         {kRequest, kRequest}},
        2},
       1);
}

TEST_CASE("an interim response of HTTP with fields looks like any reply") {
  const std::string interim = "HTTP/1.1 100 Continue\r\nServer: a\r\n\r\n";
  live({"100", {{kHead, interim}, {kBody, kReply}}, 2}, kUploads);
  const std::string hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
  live({"103, and the reply behind it", {{kHead, hints + kReply}, {kHead, kReply}}, 2}, kUploads);
}

TEST_CASE("an interim response of HTTP ends no call") {
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  Child client(where.directory(), [port](Line& parent) {
    const UniqueFd connection = connect_tcp(port);
    for (int i = 0; i < kUploads; ++i) {
      send_bytes(connection, kHead);
      receive_once(connection, kContinue.size());
      send_bytes(connection, kBody);
      receive_once(connection, kReply.size());
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd server = accept_from(listener);
  for (int i = 0; i < kUploads; ++i) {
    receive_once(server, kHead.size());
    send_bytes(server, kContinue);
    receive_once(server, kBody.size());
    send_bytes(server, kReply);
  }
  (void)client.hear();
  const std::string peer = "127.0.0.1:" + std::to_string(port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer}}) == kUploads);
  CHECK(where.value("tacho_target_condition", {{"condition", "multiplexed_calls"}}) == 0);
  client.tell();
  client.finish();
}
