// What is in flight long after it was read: requests that take long, not messages that nobody answers.

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kBefore = 3;  // requests that are answered first
constexpr std::size_t kSize = 100;
constexpr std::size_t kMessage = 9;

void poll_alone(const UniqueFd& socket) {
  pollfd one{.fd = socket.get(), .events = POLLIN, .revents = 0};
  must(::poll(&one, 1, -1) == 1, "poll");
}

void poll_with(const UniqueFd& socket, const UniqueFd& other) {
  std::array<pollfd, 2> both{
      {{.fd = socket.get(), .events = POLLIN, .revents = 0}, {.fd = other.get(), .events = POLLIN, .revents = 0}}};
  must(::poll(both.data(), both.size(), -1) > 0, "poll");
}

/// How a server waits for what comes next, when it has read the message: until there is something.
struct Waiting {
  const char* name;
  bool owes_nothing;
  std::function<void(const UniqueFd&, Line&)> wait;
};

/// A server of one connection that answers requests, reads a message, tells so, waits, and answers what comes then.
struct Case {
  explicit Case(const Waiting& waiting)
      : name(waiting.name),
        owes_nothing(waiting.owes_nothing),
        server(server_that(where.directory(),
                           [&waiting](const UniqueFd& connection, Line& parent) {
                             serve(connection, kBefore, kSize, kSize);
                             receive_once(connection, kMessage);
                             parent.tell();
                             waiting.wait(connection, parent);
                             serve(connection, 1, kSize, kSize);
                           })),
        client(connect_to(server)) {
    ask(client, kBefore, kSize, kSize);
    send_once(client, kMessage);
    (void)server.hear();
  }
  const char* name;
  bool owes_nothing;
  Watched where;
  Child server;
  UniqueFd client;
};

double in_flight(const Watched& where) {
  return where.value("tacho_requests_in_flight");
}

const std::array kWaitings{
    Waiting{"a receive", true,
            [](const UniqueFd& socket, Line&) {
              char byte = 0;
              must(::recv(socket.get(), &byte, 1, MSG_PEEK) == 1, "peek");
            }},
    Waiting{"a poll of it alone", true, [](const UniqueFd& socket, Line&) { poll_alone(socket); }},
    Waiting{"a poll of another socket, too", false,
            [](const UniqueFd& socket, Line&) { poll_with(socket, listen_tcp()); }},
    Waiting{"epoll", false,
            [](const UniqueFd& socket, Line&) {
              const UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
              epoll_event event{.events = EPOLLIN, .data = {}};
              must(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket.get(), &event) == 0, "epoll_ctl");
              must(::epoll_wait(epoll.get(), &event, 1, -1) == 1, "epoll_wait");
            }},
    Waiting{"work", false, [](const UniqueFd&, Line& parent) { (void)parent.hear(); }},
};

}  // namespace

TEST_CASE("a message without a reply is not in flight for long where its server waits for more from this client") {
  std::vector<std::unique_ptr<Case>> cases;
  for (const Waiting& waiting : kWaitings) {
    cases.push_back(std::make_unique<Case>(waiting));
  }
  for (const auto& one : cases) {
    CAPTURE(one->name);
    CHECK(in_flight(one->where) == 1);
    CHECK(one->where.value("tacho_oneway_messages_total") == 0);
  }
  // Seconds later, and once more after the sweep behind that: work goes on.
  const auto settled = [&] { return in_flight(cases[0]->where) == 0 && in_flight(cases[1]->where) == 0; };
  CHECK(shared().wait_for(settled, 12s));
  (void)shared().wait_for([] { return false; }, 2500ms);
  for (const auto& one : cases) {
    CAPTURE(one->name);
    CHECK(in_flight(one->where) == (one->owes_nothing ? 0 : 1));
    CHECK(one->where.value("tacho_oneway_messages_total") == (one->owes_nothing ? 1 : 0));
    CHECK(one->where.value("tacho_requests_total") == kBefore);
  }
  // The next request counts as ever; what waited too long before it is known to have been a message.
  cases.back()->server.tell();
  for (const auto& one : cases) {
    ask(one->client, 1, kSize, kSize);
    (void)one->server.hear();
    CAPTURE(one->name);
    CHECK(in_flight(one->where) == 0);
    CHECK(one->where.value("tacho_requests_total") == kBefore + 1);
    CHECK(one->where.value("tacho_oneway_messages_total") == 1);
    CHECK(one->where.sum("tacho_request_duration_seconds") < 1);
    one->client.reset();
    one->server.tell();
    (void)one->server.hear();
    CHECK(one->where.value("tacho_requests_unanswered_total") == 0);
    one->server.tell();
    one->server.finish();
  }
}

TEST_CASE("a reply that comes after all makes a request of what was forgotten, and its like stays in flight") {
  const Watched where;
  // One thread reads, another one answers when it is told to.
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    serve(connection, kBefore, kSize, kSize);
    std::jthread reader([&connection, &parent] {
      for (int i = 0; i < 3; ++i) {
        receive_once(connection, kMessage);
        parent.tell();
      }
    });
    for (int i = 0; i < 3; ++i) {
      (void)parent.hear();
      send_once(connection, kSize);
      if (i < 2) {
        parent.tell();
      }
    }
  });
  UniqueFd client = connect_to(server);
  ask(client, kBefore, kSize, kSize);
  send_once(client, kMessage);
  (void)server.hear();
  REQUIRE(shared().wait_for([&] { return in_flight(where) == 0; }, 12s));
  CHECK(where.value("tacho_oneway_messages_total") == 1);
  server.tell();
  receive_once(client, kSize);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kBefore + 1);
  CHECK(where.sum("tacho_request_duration_seconds") > 4);
  CHECK(in_flight(where) == 0);
  send_once(client, kMessage);
  (void)server.hear();
  (void)shared().wait_for([] { return false; }, 8s);
  CHECK(in_flight(where) == 1);
  CHECK(where.value("tacho_oneway_messages_total") == 1);
  server.tell();
  receive_once(client, kSize);
  (void)server.hear();
  CHECK(in_flight(where) == 0);
  send_once(client, kMessage);
  (void)server.hear();
  server.tell();
  receive_once(client, kSize);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kBefore + 3);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  server.tell();
  (void)server.hear();
  server.tell();
  server.finish();
}

TEST_CASE("who forgets a message and closes leaves nothing unanswered") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    serve(connection, kBefore, kSize, kSize);
    receive_once(connection, kMessage);
    parent.tell();
    char byte = 0;
    (void)::recv(connection.get(), &byte, 1, 0);
  });
  UniqueFd client = connect_to(server);
  ask(client, kBefore, kSize, kSize);
  send_once(client, kMessage);
  (void)server.hear();
  REQUIRE(shared().wait_for([&] { return in_flight(where) == 0; }, 12s));
  client.reset();
  (void)server.hear();
  server.tell();
  (void)server.hear();
  CHECK(in_flight(where) == 0);
  CHECK(where.value("tacho_oneway_messages_total") == 1);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  server.tell();
  server.finish();
}

TEST_CASE("after three messages without a reply the next one is not in flight either, unless it is answered") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    for (int i = 0; i < 4; ++i) {
      receive_once(connection, kMessage);
      parent.tell();
    }
    (void)parent.hear();
    send_once(connection, kSize);
    serve(connection, 2, kSize, kSize);
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < 4; ++i) {
    send_once(client, kMessage);
    (void)server.hear();
    CHECK(in_flight(where) == (i < 3 ? 1 : 0));
    std::this_thread::sleep_for(600ms);
  }
  CHECK(where.value("tacho_oneway_messages_total") == 3);
  server.tell();
  receive_once(client, kSize);
  ask(client, 2, kSize, kSize);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 3);
  CHECK(in_flight(where) == 0);
  CHECK(where.value("tacho_oneway_messages_total") == 3);
  server.tell();
  (void)server.hear();
  server.tell();
  server.finish();
}
