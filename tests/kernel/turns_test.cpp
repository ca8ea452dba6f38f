// What makes a request: turns, replies in parts, unanswered ones, overlap.

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;

}  // namespace

TEST_CASE("a reply in several sends is one request, and the time it took is known with the next one") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    for (int i = 0; i < kRequests; ++i) {
      receive_once(connection, 10);
      for (int part = 0; part < 5; ++part) {
        send_once(connection, 20);
      }
    }
  });
  const UniqueFd client = connect_to(server);
  ask(client, kRequests, 10, 100);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.sends() == 5 * kRequests);
  CHECK(where.receives() == kRequests);
  CHECK(where.observations("tacho_request_duration_seconds") == kRequests);
  CHECK(where.observations("tacho_request_reply_seconds") == kRequests - 1);
  server.tell();
  (void)server.hear();
  CHECK(shared().wait_for([&] { return where.observations("tacho_request_reply_seconds") == kRequests; }));
  server.tell();
  server.finish();
}

TEST_CASE("several reads before a reply are one request") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    for (int i = 0; i < kRequests; ++i) {
      for (int part = 0; part < 5; ++part) {
        receive_once(connection, 20);
      }
      send_once(connection, 10);
    }
  });
  const UniqueFd client = connect_to(server);
  ask(client, kRequests, 100, 10);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.receives() == 5 * kRequests);
  CHECK(where.observations("tacho_request_queue_seconds") == kRequests);
  CHECK(where.observations("tacho_request_service_seconds") == kRequests);
  server.tell();
  (void)server.hear();
  server.tell();
  server.finish();
}

TEST_CASE("a request that comes in parts, with pauses, is one request") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    for (int i = 0; i < kRequests; ++i) {
      receive_once(connection, 7);
      parent.tell();
      receive_once(connection, 8);
      send_once(connection, 9);
    }
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < kRequests; ++i) {
    send_once(client, 7);
    (void)server.hear();
    send_once(client, 8);
    receive_once(client, 9);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.receives() == 2 * kRequests);
  server.tell();
  (void)server.hear();
  server.tell();
  server.finish();
}

TEST_CASE("the end of a FastCGI request that is read behind its reply is none") {
  using namespace std::string_literals;
  // As nginx sends a GET with fastcgi_keep_conn, and php-fpm reads it: header by header.
  const std::string parameters(472, 'p');
  const std::string request =
      "\1\1\0\1\0\10\0\0"s + "\0\1\1\0\0\0\0\0"s + "\1\4\0\1\1\321\7\0"s + parameters + "\1\4\0\1\0\0\0\0"s;
  const std::string end = "\1\5\0\1\0\0\0\0"s;
  const Watched where;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line&) {
    for (int i = 0; i < kRequests; ++i) {
      for (const std::size_t part :
           {std::size_t{8}, std::size_t{8}, std::size_t{8}, parameters.size(), std::size_t{8}}) {
        receive_once(connection, part);
      }
      send_once(connection, 10);
      receive_once(connection, end.size());
    }
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < kRequests; ++i) {
    send_bytes(client, request + end);
    receive_once(client, 10);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "no_poll"}}) == 1; }));
  CHECK(where.value("tacho_target_condition", {{"condition", "multiplexed"}}) == 0);
  close_connection(server);
  CHECK(where.value("tacho_oneway_messages_total") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  finish(server);
}

TEST_CASE("a request is in flight from its first read, and unanswered when the connection ends before a reply") {
  for (const bool client_closes : {true, false}) {
    CAPTURE(client_closes);
    const Watched where;
    Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
      serve(connection, 3, 10, 10);
      receive_once(connection, 10);
    });
    UniqueFd client = connect_to(server);
    ask(client, 3, 10, 10);
    send_once(client, 10);
    (void)server.hear();
    CHECK(where.value("tacho_requests_in_flight") == 1);
    CHECK(where.value("tacho_requests_unanswered_total") == 0);
    if (client_closes) {
      client.reset();
    }
    server.tell();
    (void)server.hear();
    client.reset();
    CHECK(shared().wait_for([&] { return where.value("tacho_requests_unanswered_total") == 1; }));
    CHECK(where.value("tacho_requests_in_flight") == 0);
    CHECK(where.value("tacho_requests_total") == 3);
    server.tell();
    server.finish();
  }
}

TEST_CASE("a connection that is reset with a request open leaves it unanswered, once") {
  const Watched where;
  Child server =
      server_that(where.directory(), [](const UniqueFd& connection, Line&) { receive_once(connection, 10); });
  UniqueFd client = connect_to(server);
  send_once(client, 10);
  (void)server.hear();
  const linger abort{.l_onoff = 1, .l_linger = 0};
  must(::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)) == 0, "SO_LINGER");
  client.reset();
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
  server.tell();
  (void)server.hear();
  CHECK(where.value("tacho_requests_unanswered_total") == 1);
  CHECK(where.value("tacho_connections_total", {{"role", "server"}}) == 1);
  server.tell();
  server.finish();
}

TEST_CASE("a server that is killed closes what it had open") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    serve(connection, 2, 10, 10);
    receive_once(connection, 10);
  });
  const UniqueFd client = connect_to(server);
  ask(client, 2, 10, 10);
  send_once(client, 10);
  (void)server.hear();
  CHECK(where.value("tacho_connections_active", {{"role", "server"}}) == 1);
  server.kill();
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
  CHECK(where.value("tacho_requests_unanswered_total") == 1);
}

TEST_CASE("a greeting before any request is a send and no request") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    send_once(connection, 10);
    serve(connection, kRequests, 10, 10);
  });
  const UniqueFd client = connect_to(server);
  receive_once(client, 10);
  ask(client, kRequests, 10, 10);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.sends() == kRequests + 1);
  server.tell();
  (void)server.hear();
  server.tell();
  server.finish();
}

TEST_CASE("a connection without a request is none answered, none unanswered") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    char byte = 0;
    must(::recv(connection.get(), &byte, 1, 0) == 0, "end of the stream");
  });
  connect_to(server).reset();
  (void)server.hear();
  server.tell();
  (void)server.hear();
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
  CHECK(where.value("tacho_connections_total", {{"role", "server"}}) == 1);
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  server.tell();
  server.finish();
}

TEST_CASE("requests that arrive while one is unanswered mark the target as multiplexed") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    for (int i = 0; i < kRequests; ++i) {
      receive_once(connection, 10);
      parent.tell();
      (void)parent.hear();  // the next one has come
      send_once(connection, 10);
    }
  });
  const UniqueFd client = connect_to(server);
  send_once(client, 10);
  for (int i = 0; i < kRequests; ++i) {
    (void)server.hear();
    send_once(client, 10);
    server.tell();
    receive_once(client, 10);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "multiplexed"}}) == 1; }));
  server.tell();
  (void)server.hear();
  server.tell();
  server.finish();
}

TEST_CASE("alternating requests do not mark the target as multiplexed") {
  const Watched where;
  Child server =
      server_that(where.directory(), [](const UniqueFd& connection, Line&) { serve(connection, kRequests, 10, 10); });
  const UniqueFd client = connect_to(server);
  ask(client, kRequests, 10, 10);
  (void)server.hear();
  // The condition needs two samples, which are taken once a second: the first rate shows that they are there.
  CHECK(shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "no_poll"}}) == 1; }));
  CHECK(where.value("tacho_target_condition", {{"condition", "multiplexed"}}) == 0);
  server.tell();
  (void)server.hear();
  server.tell();
  server.finish();
}
