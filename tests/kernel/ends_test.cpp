// The ends of connections: what is read, sent and counted around FIN and RST.

#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/place.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kLarge = 32 << 20;

/// One blocking send of more than any buffer holds. @return what was sent, as the call says
ssize_t send_large(const UniqueFd& socket) {
  const std::vector<char> reply(kLarge);
  return ::send(socket.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
}

void check_counts(const Watched& where, double requests, double unanswered) {
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
  CHECK(where.value("tacho_requests_total") == requests);
  CHECK(where.value("tacho_requests_unanswered_total") == unanswered);
  CHECK(where.value("tacho_requests_in_flight") == 0);
}

}  // namespace

TEST_CASE("what a server reads after its own FIN is no request") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    serve(connection, 1, 10, 10);
    must(::shutdown(connection.get(), SHUT_WR) == 0, "shutdown");
    parent.tell();
    for (int i = 0; i < 3; ++i) {
      receive_once(connection, 10);
      parent.tell();
    }
  });
  UniqueFd client = connect_to(server);
  ask(client, 1, 10, 10);
  (void)server.hear();
  for (int i = 0; i < 3; ++i) {
    send_once(client, 10);
    (void)server.hear();
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_in_flight") == 0);
  client.reset();
  close_connection(server);
  check_counts(where, 1, 0);
  finish(server);
}

TEST_CASE("a request that is read after the client's reset can get no reply") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    serve(connection, 3, 10, 10);
    parent.tell();
    wait_for_end(connection);
    receive_once(connection, 10);
  });
  UniqueFd client = connect_to(server);
  ask(client, 3, 10, 10);
  (void)server.hear();
  send_once(client, 10);
  reset_connection(client);
  (void)server.hear();
  close_connection(server);
  check_counts(where, 3, 0);
  finish(server);
}

TEST_CASE("a client that closes its side with the request still gets its reply, which counts") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    wait_for_end(connection);
    receive_once(connection, 10);
    send_once(connection, 10);
  });
  const UniqueFd client = connect_to(server);
  send_once(client, 10);
  must(::shutdown(client.get(), SHUT_WR) == 0, "shutdown");
  receive_once(client, 10);
  (void)server.hear();
  close_connection(server);
  check_counts(where, 1, 0);
  finish(server);
}

TEST_CASE("a reply that is being sent when the client resets is a reply") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    receive_once(connection, 10);
    const ssize_t sent = send_large(connection);
    must(sent > 0 && sent < static_cast<ssize_t>(kLarge), "a send that is cut off");
    parent.tell();
  });
  UniqueFd client = connect_to(server);
  send_once(client, 10);
  receive_once(client, 1000);
  reset_connection(client);
  (void)server.hear();
  (void)server.hear();
  close_connection(server);
  check_counts(where, 1, 0);
  finish(server);
}

TEST_CASE("a reply that is being sent when the client closes with what it has not read is a reply") {
  const Place place(GENERATE(Place::Kind::tcp, Place::Kind::mptcp, Place::Kind::unix_stream));
  if (!place.available()) {
    return;
  }
  CAPTURE(name_of(place.kind()));
  const Watched where;
  Child server = server_at(place, where.directory(), [](const UniqueFd& connection, Line&) {
    receive_once(connection, 10);
    const ssize_t sent = send_large(connection);
    must(sent > 0 && sent < static_cast<ssize_t>(kLarge), "a send that is cut off");
  });
  {
    const UniqueFd client = connect_to(server, place);
    send_once(client, 10);
    receive_once(client, 1000);
  }
  (void)server.hear();
  server.tell();
  (void)server.hear();
  check_counts(where, 1, 0);
  CHECK(where.value("tacho_unseen_replies_total") == 0);
  server.tell();
  server.finish();
}

TEST_CASE("what is pushed to a client that has closed its side is no call") {
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  Child client(where.directory(), [port](Line& parent) {
    const UniqueFd silent = connect_tcp(port);
    must(::shutdown(silent.get(), SHUT_WR) == 0, "shutdown");
    receive_once(silent, 500);
    const UniqueFd asking = connect_tcp(port);
    ask(asking, 3, 10, 10);
    must(::shutdown(asking.get(), SHUT_WR) == 0, "shutdown");
    receive_once(asking, 500);
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd pushing = accept_from(listener);
  wait_for_end(pushing);
  send_once(pushing, 500);
  const UniqueFd answering = accept_from(listener);
  serve(answering, 3, 10, 10);
  wait_for_end(answering);
  send_once(answering, 500);
  (void)client.hear();
  const std::string peer = "127.0.0.1:" + std::to_string(port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer}}) == 3);
  CHECK(where.sum("tacho_dependency_duration_seconds", {{"peer", peer}}) < 1);
  client.tell();
  client.finish();
}

TEST_CASE("what two threads send by one connection at the same time is counted once") {
  constexpr int kThreads = 2;
  constexpr int kSends = 20'000;
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&connection] {
        for (int sent = 0; sent < kSends; ++sent) {
          send_once(connection, 1);
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  });
  const UniqueFd client = connect_to(server);
  std::array<char, 4096> data{};
  for (int received = 0; received < kThreads * kSends;) {
    const ssize_t more = ::recv(client.get(), data.data(), data.size(), 0);
    must(more > 0, "recv");
    received += static_cast<int>(more);
  }
  (void)server.hear();
  CHECK(where.sends() == kThreads * kSends);
  close_connection(server);
  finish(server);
}
