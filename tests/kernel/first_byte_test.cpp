// When a reply begins, on streams of every kind: within a call that sends all of it, and while another thread reads on.

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/place.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr std::array kKinds{Place::Kind::tcp, Place::Kind::mptcp, Place::Kind::unix_stream};

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

TEST_CASE("the first byte of a reply is what a blocking send begins with, not what it ends with") {
  static constexpr std::size_t kLarge = 32 << 20;
  static constexpr auto kThinking = 200ms;
  constexpr auto kReading = 600ms;
  for (const Place::Kind kind : kKinds) {
    CAPTURE(name_of(kind));
    const Watched where;
    const Place place(kind);
    if (!place.available()) {
      continue;
    }
    Child server = server_at(place, where.directory(), [](const UniqueFd& connection, Line&) {
      const std::vector<char> reply(kLarge);
      for (int i = 0; i < 2; ++i) {
        receive_once(connection, 10);
        std::this_thread::sleep_for(kThinking);
        must(::send(connection.get(), reply.data(), kLarge, MSG_NOSIGNAL) == static_cast<ssize_t>(kLarge), "send");
      }
    });
    const UniqueFd client = connect_to(server, place);
    for (int i = 0; i < 2; ++i) {
      send_once(client, 10);
      constexpr int kParts = 32;
      for (int part = 0; part < kParts; ++part) {
        receive_once(client, kLarge / kParts);
        std::this_thread::sleep_for(kReading / kParts);
      }
    }
    (void)server.hear();
    const double thinking = 2 * seconds(kThinking);
    CHECK(where.value("tacho_requests_total") == 2);
    CHECK(where.sum("tacho_request_duration_seconds") >= thinking - 0.02);
    // A busy machine lets everybody think longer; the time of the whole reply is far above that.
    CHECK(where.sum("tacho_request_duration_seconds") < thinking + seconds(kReading));
    CHECK(where.sum("tacho_request_service_seconds") < thinking + seconds(kReading));
    // The end of a unix connection is not seen: there the first one's reply is all that is known.
    const bool ends = kind != Place::Kind::unix_stream;
    close_connection(server);
    const double known = ends ? 2 : 1;
    CHECK(shared().wait_for([&] { return where.observations("tacho_request_reply_seconds") == known; }));
    // All but what the buffers of both sides hold; those of MPTCP grow larger.
    const double share = kind == Place::Kind::mptcp ? 0.1 : 0.5;
    CHECK(where.sum("tacho_request_reply_seconds") > known * share * seconds(kReading));
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
