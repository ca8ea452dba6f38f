// Messages that get no reply, and requests that come in pieces: what belongs to a request, and when its time begins.

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

/// Longer than the pause that ends a turn without a reply.
constexpr auto kPause = 1500ms;
/// Far above what anything here takes, far below the pause.
constexpr double kShort = 0.3;

}  // namespace

TEST_CASE("a message without a reply is none of the next request's time, and ends its own turn") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    serve(connection, 1, 100, 100);
    for (int i = 0; i < 2; ++i) {
      receive_once(connection, 13);
      parent.tell();
      serve(connection, 3, 100, 100);
    }
  });
  const UniqueFd client = connect_to(server);
  ask(client, 1, 100, 100);
  for (int i = 0; i < 2; ++i) {
    send_once(client, 13);
    (void)server.hear();
    std::this_thread::sleep_for(kPause);
    ask(client, 3, 100, 100);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 7);
  CHECK(where.value("tacho_oneway_messages_total") == 2);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  for (const char* family :
       {"tacho_request_duration_seconds", "tacho_request_queue_seconds", "tacho_request_service_seconds"}) {
    CAPTURE(family);
    CHECK(where.observations(family) == 7);
    CHECK(where.sum(family) < kShort);
  }
  CHECK(shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "one_way"}}) == 1; }));
  close_connection(server);
  finish(server);
}

TEST_CASE("one message in sixteen without a reply raises no condition") {
  constexpr int kAnswered = 15;
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    receive_once(connection, 13);
    parent.tell();
    serve(connection, kAnswered, 100, 100);
  });
  const UniqueFd client = connect_to(server);
  send_once(client, 13);
  (void)server.hear();
  std::this_thread::sleep_for(kPause);
  ask(client, kAnswered, 100, 100);
  (void)server.hear();
  CHECK(where.value("tacho_oneway_messages_total") == 1);
  // Then the sampler has seen all of it, and conditions are judged by what it saw.
  REQUIRE(shared().wait_for([&] { return where.value("tacho_observed_rps") > 0; }));
  CHECK(where.value("tacho_target_condition", {{"condition", "one_way"}}) == 0);
  close_connection(server);
  finish(server);
}

TEST_CASE("messages that stay without a reply are counted one by one") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    for (int i = 0; i < 3; ++i) {
      receive_once(connection, 20);
      parent.tell();
    }
  });
  UniqueFd client = connect_to(server);
  for (int i = 0; i < 3; ++i) {
    send_once(client, 20);
    (void)server.hear();
    std::this_thread::sleep_for(600ms);
  }
  (void)server.hear();
  CHECK(where.value("tacho_oneway_messages_total") == 2);
  CHECK(where.value("tacho_requests_in_flight") == 1);
  client.reset();
  server.tell();
  (void)server.hear();
  CHECK(shared().wait_for([&] { return where.value("tacho_requests_in_flight") == 0; }));
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 1);
  server.tell();
  server.finish();
}

TEST_CASE("a request in pieces is one, its time begins with the last piece that the server waited for") {
  constexpr int kRequests = 3;
  constexpr int kPieces = 5;
  constexpr auto kBetween = 100ms;
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    for (int i = 0; i < kRequests; ++i) {
      for (int piece = 0; piece < kPieces; ++piece) {
        receive_once(connection, 1000);
        parent.tell();
      }
      send_once(connection, 10);
    }
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < kRequests; ++i) {
    for (int piece = 0; piece < kPieces; ++piece) {
      if (piece > 0) {
        std::this_thread::sleep_for(kBetween);
      }
      send_once(client, 1000);
      (void)server.hear();
    }
    receive_once(client, 10);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_oneway_messages_total") == 0);
  CHECK(where.sum("tacho_request_duration_seconds") < 0.1 * kRequests);
  CHECK(where.sum("tacho_request_queue_seconds") <= where.sum("tacho_request_duration_seconds"));
  const double receiving = std::chrono::duration<double>(kBetween).count() * (kPieces - 1) * kRequests;
  CHECK(where.observations("tacho_request_receive_seconds") == kRequests);
  CHECK(where.sum("tacho_request_receive_seconds") >= receiving * 0.99);
  CHECK(where.sum("tacho_request_receive_seconds") < receiving + 0.5);
  close_connection(server);
  finish(server);
}

TEST_CASE("what comes while something is unread does not move a request's time") {
  const Watched where;
  // The server is told after the second piece has come; between its two reads comes a third one.
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    (void)parent.hear();
    receive_once(connection, 5);
    parent.tell();
    (void)parent.hear();
    receive_once(connection, 10);
    send_once(connection, 10);
  });
  const UniqueFd client = connect_to(server);
  send_once(client, 5);
  std::this_thread::sleep_for(100ms);
  send_once(client, 5);
  std::this_thread::sleep_for(100ms);
  server.tell();
  (void)server.hear();
  std::this_thread::sleep_for(100ms);
  send_once(client, 5);
  server.tell();
  receive_once(client, 10);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 1);
  CHECK(where.sum("tacho_request_duration_seconds") >= 0.3);
  CHECK(where.sum("tacho_request_queue_seconds") >= 0.2);
  CHECK(where.sum("tacho_request_queue_seconds") < 0.3);
  CHECK(where.sum("tacho_request_receive_seconds") == 0);
  close_connection(server);
  finish(server);
}

TEST_CASE("one receive that waits for all of a request takes the time of its last piece") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    receive_once(connection, 20);
    send_once(connection, 10);
  });
  const UniqueFd client = connect_to(server);
  send_once(client, 10);
  std::this_thread::sleep_for(300ms);
  send_once(client, 10);
  receive_once(client, 10);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 1);
  CHECK(where.sum("tacho_request_duration_seconds") < 0.25);
  close_connection(server);
  finish(server);
}

TEST_CASE("a client that sends on and on and gets no reply has not several requests at a time") {
  constexpr int kConnections = 23;
  constexpr int kMessages = 12;
  // A line of statsd, a message of Kafka that wants no acknowledgement, a line of a log; the length of each read.
  const std::string produced = "\0\0\0\x10pppppppppppppppp"s;
  const std::string message = GENERATE_COPY("page.hits:1|c\n"s, produced, "<13>1 - host app - - a line\n"s);
  const bool together = GENERATE(true, false);
  CAPTURE(message, together);
  const Watched where;
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = accept_from(listener);
      serve(connection, 1, 100, 100);
      for (int k = 0; k < (together ? 1 : kMessages); ++k) {
        receive_once(connection, message.size() * (together ? kMessages : 1));
        parent.tell();
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd client = connect_tcp(port);
    ask(client, 1, 100, 100);
    for (int k = 0; k < kMessages; ++k) {
      send_bytes(client, message);
      if (!together) {
        (void)server.hear();
      }
    }
    if (together) {
      (void)server.hear();
    }
  }
  (void)server.hear();
  REQUIRE(shared().wait_for([&] { return where.value("tacho_observed_rps") > 0; }));
  CHECK(where.value("tacho_requests_total") == kConnections);
  CHECK(where.value("tacho_target_condition", {{"condition", "multiplexed"}}) == 0);
  CHECK(where.value("tacho_multiplexed_connections_total") == 0);
  server.tell();
  server.finish();
}
