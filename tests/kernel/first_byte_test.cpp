// When a reply begins, on streams of every kind: within a call that sends all of it, and while another thread reads on.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kernel/kernel_types.h"
#include "kernel/support/place.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr std::array kKinds{Place::Kind::tcp, Place::Kind::mptcp, Place::Kind::unix_stream};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

namespace {

/// Before Linux 5.13 MPTCP's window may stop the clock of its subflows.
bool tells_first_byte(Place::Kind kind) {
  return kind != Place::Kind::mptcp || tacho::kernel::absent_target("tp_btf/mptcp_subflow_get_send", {}).empty();
}

/// What a server measures of its replies, in nanoseconds: between reading a request and sending, and in the sends.
struct Measured {
  std::int64_t thinking;
  std::int64_t sending;
};

}  // namespace

TEST_CASE("the first byte of a reply is what a blocking send begins with, not what it ends with") {
  static constexpr std::size_t kLarge = 32 << 20;
  static constexpr auto kThinking = 200ms;
  static constexpr int kReplies = 2;
  constexpr auto kReading = 600ms;
  for (const Place::Kind kind : kKinds) {
    CAPTURE(name_of(kind));
    const Watched where;
    const Place place(kind);
    if (!place.available()) {
      continue;
    }
    const Shared<Measured> measured;
    Child server = server_at(place, where.directory(), [&measured](const UniqueFd& connection, Line&) {
      const std::vector<char> reply(kLarge);
      for (int i = 0; i < kReplies; ++i) {
        receive_once(connection, 10);
        const std::int64_t read = now_ns();
        std::this_thread::sleep_for(kThinking);
        const std::int64_t begun = now_ns();
        must(::send(connection.get(), reply.data(), kLarge, MSG_NOSIGNAL) == static_cast<ssize_t>(kLarge), "send");
        measured->thinking += begun - read;
        measured->sending += now_ns() - begun;
      }
    });
    const UniqueFd client = connect_to(server, place);
    for (int i = 0; i < kReplies; ++i) {
      send_once(client, 10);
      constexpr int kParts = 32;
      for (int part = 0; part < kParts; ++part) {
        receive_once(client, kLarge / kParts);
        std::this_thread::sleep_for(kReading / kParts);
      }
    }
    (void)server.hear();
    const double thinking = seconds(std::chrono::nanoseconds(measured->thinking));
    const double sending = seconds(std::chrono::nanoseconds(measured->sending));
    CHECK(where.value("tacho_requests_total") == kReplies);
    CHECK(where.sum("tacho_request_duration_seconds") >= thinking - 0.02);
    if (tells_first_byte(kind)) {
      // TCP's clock stands still while the server waits for a CPU and the client has taken all there was.
      CHECK(where.sum("tacho_request_service_seconds") < thinking + sending / 4);
    }
    // The end of a unix connection is not seen: there the first one's reply is all that is known.
    const bool ends = kind != Place::Kind::unix_stream;
    close_connection(server);
    const double known = ends ? kReplies : kReplies - 1;
    CHECK(shared().wait_for([&] { return where.observations("tacho_request_reply_seconds") == known; }));
    // All but what the buffers of both sides hold; those of MPTCP grow larger.
    const double share = kind == Place::Kind::mptcp ? 0.1 : 0.5;
    CHECK(where.sum("tacho_request_reply_seconds") > known * share * seconds(kReading));
    finish(server);
  }
}

TEST_CASE("a request that is read while another thread still sends the reply before it counts for itself") {
  static constexpr std::size_t kLarge = 32 << 20;
  for (const Place::Kind kind : kKinds) {
    CAPTURE(name_of(kind));
    const Watched where;
    const Place place(kind);
    if (!place.available()) {
      continue;
    }
    Child server = server_at(place, where.directory(), [](const UniqueFd& connection, Line& parent) {
      receive_once(connection, 10);
      std::thread writer([&connection] {
        const std::vector<char> reply(kLarge);
        must(::send(connection.get(), reply.data(), kLarge, MSG_NOSIGNAL) == static_cast<ssize_t>(kLarge), "send");
      });
      receive_once(connection, 20);
      parent.tell();
      writer.join();
      send_once(connection, 1);
    });
    const UniqueFd client = connect_to(server, place);
    send_once(client, 10);
    receive_once(client, 1);
    send_once(client, 20);
    (void)server.hear();
    constexpr int kParts = 32;
    for (int part = 0; part < kParts; ++part) {
      receive_once(client, kLarge / kParts);
    }
    (void)server.hear();
    CHECK(where.value("tacho_requests_total") == 2);
    close_connection(server);
    CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
    CHECK(where.value("tacho_requests_unanswered_total") == 0);
    CHECK(where.value("tacho_requests_in_flight") == 0);
    finish(server);
  }
}

TEST_CASE("one thread reads a connection, another one writes it: no request is lost") {
  static constexpr int kConnections = 4;
  static constexpr int kRequests = 20'000;
  for (const Place::Kind kind : kKinds) {
    CAPTURE(name_of(kind));
    const Watched where;
    const Place place(kind);
    if (!place.available()) {
      continue;
    }
    Child server(where.directory(), [&place](Line& parent) {
      const UniqueFd listener = place.listen();
      parent.tell();
      std::vector<std::thread> threads;
      for (int i = 0; i < kConnections; ++i) {
        threads.emplace_back([connection = place.accept(listener)] {
          std::array<int, 2> line{};
          must(::pipe(line.data()) == 0, "pipe");
          std::thread writer([&] {
            char word = 0;
            for (int sent = 0; sent < kRequests; ++sent) {
              must(::read(line[0], &word, 1) == 1, "read");
              must(::send(connection.get(), &word, 1, 0) == 1, "send");
            }
          });
          char word = 0;
          for (int received = 0; received < kRequests; ++received) {
            must(::recv(connection.get(), &word, 1, 0) == 1, "recv");
            must(::write(line[1], &word, 1) == 1, "write");
          }
          writer.join();
          ::close(line[0]);
          ::close(line[1]);
        });
      }
      for (std::thread& thread : threads) {
        thread.join();
      }
      parent.tell();
      (void)parent.hear();
    });
    (void)server.hear();
    std::vector<std::thread> clients;
    for (int i = 0; i < kConnections; ++i) {
      clients.emplace_back([client = place.connect()] { ask(client, kRequests, 1, 1); });
    }
    for (std::thread& client : clients) {
      client.join();
    }
    (void)server.hear();
    CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
    CHECK(where.value("tacho_requests_total") == kConnections * kRequests);
    CHECK(where.value("tacho_requests_unanswered_total") == 0);
    CHECK(where.value("tacho_requests_in_flight") == 0);
    server.tell();
    server.finish();
  }
}
