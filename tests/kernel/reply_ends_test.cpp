// Where a reply ends: what a server says later is none of it, however long its client keeps it waiting.

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/place.h"
#include "kernel/support/records.h"
#include "kernel/support/running.h"
#include "kernel/support/served_in_turn.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr std::array kKinds{Place::Kind::tcp, Place::Kind::mptcp, Place::Kind::unix_stream};
/// MPTCP does not tell whether a server that is silent waits for its client.
constexpr std::array kSilenceIsKnown{Place::Kind::tcp, Place::Kind::unix_stream};
/// More than the pause that ends a reply.
constexpr auto kLongPause = 5500ms;
constexpr std::size_t kSize = 10;

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

using Treat = std::function<void(const UniqueFd&, Line&)>;

/// A server in a cgroup of its own, at a place of its own.
struct Served {
  Served(Place::Kind kind, const Treat& treat)
      : place(kind), server(server_at(place, where.directory(), treat)), client(connect_to(server, place)) {}
  Watched where;
  Place place;
  Child server;
  UniqueFd client;
};

/// Of each of these kinds that this kernel has, all at once.
std::vector<std::unique_ptr<Served>> at_places(std::span<const Place::Kind> kinds, const Treat& treat) {
  std::vector<std::unique_ptr<Served>> all;
  for (const Place::Kind kind : kinds) {
    if (Place(kind).available()) {
      all.push_back(std::make_unique<Served>(kind, treat));
    }
  }
  return all;
}

/// A request, which makes known what the reply before it took.
void finish_with_another(Served& served) {
  ask(served.client, 1, kSize, kSize);
  (void)served.server.hear();
  REQUIRE(shared().wait_for([&] { return served.where.observations("tacho_request_reply_seconds") == 1; }));
}

/// How a server sends a large reply: in pieces, each when there is room; in pieces, by calls that wait for room; a
/// small piece and then all the rest by one such call.
enum class How : std::uint8_t { polling, blocking, at_once };

void send_large(const UniqueFd& socket, std::size_t size, How how) {
  if (how == How::at_once) {
    const std::vector<char> rest(size - kSize);
    send_once(socket, kSize);
    must(::send(socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(rest.size()), "send");
    return;
  }
  const bool waits = how == How::polling;
  constexpr std::size_t kPiece = std::size_t{64} << 10U;
  const std::vector<char> piece(kPiece);
  while (size > 0) {
    pollfd room{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    must(!waits || ::poll(&room, 1, -1) == 1, "poll");
    const ssize_t sent = ::send(socket.get(), piece.data(), std::min(size, kPiece), waits ? MSG_DONTWAIT : 0);
    must(sent > 0 || errno == EAGAIN, "send");
    size -= sent > 0 ? static_cast<std::size_t>(sent) : 0;
  }
}

}  // namespace

TEST_CASE("what a server says long after a reply, unasked, is none of it") {
  static constexpr auto kWithin = 20ms;
  // A quarter of a buffer, for which a reply is not what fills it.
  static constexpr std::size_t kMost = 3000;
  const auto all = at_places(kSilenceIsKnown, [](const UniqueFd& connection, Line&) {
    constexpr int kSmall = 4608;
    must(::setsockopt(connection.get(), SOL_SOCKET, SO_SNDBUF, &kSmall, sizeof(kSmall)) == 0, "SO_SNDBUF");
    receive_once(connection, kSize);
    send_once(connection, kMost);
    std::this_thread::sleep_for(kWithin);
    send_once(connection, kSize);
    std::this_thread::sleep_for(kLongPause);
    send_once(connection, kSize);
    serve(connection, 1, kSize, kSize);
  });
  for (const auto& each : all) {
    send_once(each->client, kSize);
  }
  for (const std::size_t part : {kMost, kSize}) {
    for (const auto& each : all) {
      receive_once(each->client, part);
    }
  }
  for (const auto& each : all) {
    CAPTURE(name_of(each->place.kind()));
    receive_once(each->client, kSize);
    finish_with_another(*each);
    CHECK(each->where.sum("tacho_request_reply_seconds") >= seconds(kWithin));
    CHECK(each->where.sum("tacho_request_reply_seconds") < seconds(kWithin) + 1);
    CHECK(each->where.value("tacho_requests_total") == 2);
    close_connection(each->server);
    finish(each->server);
  }
}

TEST_CASE("a reply goes on while its client makes it wait") {
  static constexpr std::size_t kParts = 16;  // more than the buffers of both sides hold
  static constexpr std::size_t kLarge = std::size_t{kParts} << 20U;
  std::vector<std::unique_ptr<Served>> all;
  for (const How how : {How::polling, How::blocking, How::at_once}) {
    auto some = at_places(kKinds, [how](const UniqueFd& connection, Line&) {
      receive_once(connection, kSize);
      send_large(connection, kLarge, how);
      serve(connection, 1, kSize, kSize);
    });
    std::ranges::move(some, std::back_inserter(all));
  }
  for (const auto& each : all) {
    // Else it grows while a busy machine reads the first part, up to 32 MiB.
    constexpr int kBuffer = 256 << 10;
    must(::setsockopt(each->client.get(), SOL_SOCKET, SO_RCVBUF, &kBuffer, sizeof(kBuffer)) == 0, "SO_RCVBUF");
    send_once(each->client, kSize);
    receive_once(each->client, kLarge / kParts);
  }
  std::this_thread::sleep_for(kLongPause);
  for (const auto& each : all) {
    CAPTURE(name_of(each->place.kind()));
    for (std::size_t part = 1; part < kParts; ++part) {
      receive_once(each->client, kLarge / kParts);
    }
    finish_with_another(*each);
    CHECK(each->where.sum("tacho_request_reply_seconds") >= seconds(kLongPause));
    CHECK(each->where.value("tacho_requests_total") == 2);
    close_connection(each->server);
    finish(each->server);
  }
}

namespace {

/// What a client says and its server answers, and as which goodbye.
struct Life {
  std::string name;
  struct Turn {
    std::string said;
    std::vector<std::size_t> answers;
  };
  std::vector<Turn> turns;
  std::string goodbye;
};

const std::vector<Life>& lives() {
  static const Life::Turn hello{kHello, {1000}};
  static const Life::Turn flight{kChangeCipherSpec + kFinished, {250, 250}};
  static const std::string with_request = kChangeCipherSpec + kFinished + kRequest;
  static const std::vector<Life> all = {
      {"TLS 1.3", {hello, flight, {kRequest, {400}}}, kShort},
      {"TLS 1.3, a request with the last flight", {hello, {with_request, {5000}}}, kShort},
      {"TLS 1.3, one whose reply is as short as a ticket", {hello, {with_request, {400}}}, kShort},
      {"TLS 1.3, one whose reply follows tickets", {hello, {with_request, {250, 250, 400}}}, kShort},
      {"TLS 1.3, a reply as short as a goodbye", {hello, flight, {kRequest, {24}}}, kShort},
      {"TLS 1.2", {hello, {kKeyExchange + kChangeCipherSpec + kFinished12, {51}}, {kRequest, {400}}}, kAlert},
  };
  return all;
}

}  // namespace

TEST_CASE("a goodbye of TLS is no part of the reply before it") {
  static constexpr auto kIdle = 200ms;
  constexpr int kConnections = 2;
  for (const Life& life : lives()) {
    CAPTURE(life.name);
    const Watched where;
    Child server = served_in_turn(where.directory(), kConnections, [&](const UniqueFd& connection, Line& parent) {
      for (const Life::Turn& turn : life.turns) {
        receive_once(connection, turn.said.size());
        for (const std::size_t answer : turn.answers) {
          send_once(connection, answer);
        }
      }
      std::this_thread::sleep_for(kIdle);
      send_bytes(connection, life.goodbye);
      must(::shutdown(connection.get(), SHUT_WR) == 0, "shutdown");
      parent.tell();
      (void)parent.hear();
    });
    const auto port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd client = connect_tcp(port);
      for (const Life::Turn& turn : life.turns) {
        send_bytes(client, turn.said);
        for (const std::size_t answer : turn.answers) {
          receive_once(client, answer);
        }
      }
      receive_once(client, life.goodbye.size());
      (void)server.hear();
      server.tell();
    }
    server.finish();
    CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
    const auto page = shared().page();
    const Labels of_target{{"cgroup", where.path()}};
    CHECK(page.value("tacho_requests_total", of_target) == kConnections);
    CHECK(page.value("tacho_requests_unanswered_total", of_target) == 0);
    CHECK(page.value("tacho_requests_in_flight", of_target) == 0);
    CHECK(page.value("tacho_request_reply_seconds_sum", of_target) < seconds(kIdle) / 2);
    CHECK(page.value("tacho_request_duration_seconds_sum", of_target) < seconds(kIdle) / 2);
  }
}
