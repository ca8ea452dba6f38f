// Connections that go from one process to another in the middle of a request.

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "kernel/support/child.h"
#include "kernel/support/place.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kConnections = 5;
constexpr int kMore = 3;
constexpr std::size_t kRequest = 30;
constexpr std::size_t kReply = 20;

/// Accepts connections and reads so many bytes of each before it tells its number; closes it when it hears a word.
Child reader_at(const Place& place, const std::string& cgroup, std::size_t bytes) {
  return Child(cgroup, [&place, bytes](Line& parent) {
    const UniqueFd listener = place.listen();
    parent.tell();
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = place.accept(listener);
      if (bytes > 0) {
        receive_once(connection, bytes);
      }
      parent.tell(static_cast<std::uint64_t>(connection.get()));
      (void)parent.hear();
    }
    (void)parent.hear();
  });
}

/// Takes the connections over whose numbers it hears, reads the rest of the request, answers it, and serves more.
Child answerer(const Child& reader, const std::string& cgroup, std::size_t rest) {
  return Child(cgroup, [from = reader.pid(), rest](Line& parent) {
    for (int i = 0; i < kConnections; ++i) {
      const UniqueFd connection = take_from(from, static_cast<int>(parent.hear()));
      if (rest > 0) {
        receive_once(connection, rest);
      }
      send_once(connection, kReply);
      serve(connection, kMore, kRequest, kReply);
      parent.tell();
      (void)parent.hear();
    }
    parent.tell();
    (void)parent.hear();
  });
}

void check_counts(const Watched& where, double requests, double unseen = 0) {
  CHECK(where.value("tacho_requests_total") == requests);
  CHECK(where.observations("tacho_request_duration_seconds") == requests);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  CHECK(where.value("tacho_oneway_messages_total") == 0);
  CHECK(where.value("tacho_unseen_replies_total") == unseen);
  CHECK(where.value("tacho_requests_in_flight") == 0);
}

double active(const Watched& where) {
  return where.value("tacho_connections_active", {{"role", "server"}});
}

/// @param read by the first process, of each connection's first request
/// @param first where that process is, @param second where the other one is; nobody watches what is nowhere
/// @param waits so long a request does, until the other one takes its connection over
void hand_over(const Place& place, std::size_t read, const Watched* first, const Watched* second,
               std::chrono::milliseconds waits = 0ms) {
  const auto directory = [](const Watched* where) { return where == nullptr ? std::string() : where->directory(); };
  Child reading = reader_at(place, directory(first), read);
  Child answering = answerer(reading, directory(second), kRequest - read);
  (void)reading.hear();
  for (int i = 0; i < kConnections; ++i) {
    const UniqueFd client = place.connect();
    send_once(client, kRequest);
    const auto connection = reading.hear();
    std::this_thread::sleep_for(waits);
    answering.tell(connection);
    receive_once(client, kReply);
    ask(client, kMore, kRequest, kReply);
    (void)answering.hear();
    reading.tell();
    answering.tell();
  }
  (void)answering.hear();
  CHECK(shared().wait_for(
      [&] { return (first == nullptr || active(*first) == 0) && (second == nullptr || active(*second) == 0); }));
  for (Child* child : {&reading, &answering}) {
    child->tell();
    child->finish();
  }
}

}  // namespace

TEST_CASE("a request that one target has read and another one answers is the other's") {
  for (const Place::Kind kind : {Place::Kind::tcp, Place::Kind::unix_stream}) {
    for (const std::size_t read : {kRequest, kRequest / 2}) {
      CAPTURE(name_of(kind), read);
      const Place place(kind);
      const Watched first;
      const Watched second;
      hand_over(place, read, &first, &second);
      check_counts(first, 0);
      check_counts(second, kConnections * (1 + kMore));
    }
  }
}

TEST_CASE("a request that somebody answers who is not watched is in flight no more when its connection ends") {
  for (const Place::Kind kind : {Place::Kind::tcp, Place::Kind::unix_stream}) {
    CAPTURE(name_of(kind));
    const Place place(kind);
    const Watched first;
    hand_over(place, kRequest, &first, nullptr);
    // The end of a unix connection is not seen.
    check_counts(first, 0, kind == Place::Kind::tcp ? kConnections : 0);
  }
}

TEST_CASE("a request that somebody has read who is not watched is none, and one whose rest a target reads is its own") {
  for (const Place::Kind kind : {Place::Kind::tcp, Place::Kind::unix_stream}) {
    for (const std::size_t read : {kRequest, kRequest / 2}) {
      CAPTURE(name_of(kind), read);
      const Place place(kind);
      const Watched second;
      hand_over(place, read, nullptr, &second);
      check_counts(second, kConnections * (kMore + (read < kRequest ? 1 : 0)));
    }
  }
}

TEST_CASE("a request on a connection that somebody else has accepted has waited until its server reads it") {
  constexpr auto kWaits = 60ms;
  const Place place(Place::Kind::tcp);
  const Watched where;
  hand_over(place, 0, nullptr, &where, kWaits);
  check_counts(where, kConnections * (1 + kMore));
  // TCP knows by jiffies when data came, each of which may last 10 ms.
  const double known = kConnections * std::chrono::duration<double>(kWaits - 20ms).count();
  CHECK(where.sum("tacho_request_queue_seconds") >= known);
  CHECK(where.sum("tacho_request_duration_seconds") >= known);
  CHECK(where.sum("tacho_request_duration_seconds") < 3 * known);
}

TEST_CASE("one target reads and another one answers: each request counts once, with one of them") {
  constexpr int kRounds = 40;
  for (const bool watched : {true, false}) {
    CAPTURE(watched);
    const Place place(Place::Kind::tcp);
    const Watched first;
    const Watched second;
    Child reading(first.directory(), [&place](Line& parent) {
      const UniqueFd listener = place.listen();
      parent.tell();
      const UniqueFd connection = place.accept(listener);
      parent.tell(static_cast<std::uint64_t>(connection.get()));
      for (int i = 0; i < kRounds; ++i) {
        receive_once(connection, kRequest);
        parent.tell();
      }
      (void)parent.hear();
    });
    (void)reading.hear();
    const UniqueFd client = place.connect();
    const int descriptor = static_cast<int>(reading.hear());
    Child answering(watched ? second.directory() : "", [from = reading.pid(), descriptor](Line& parent) {
      const UniqueFd connection = take_from(from, descriptor);
      for (int i = 0; i < kRounds; ++i) {
        (void)parent.hear();
        send_once(connection, kReply);
      }
      (void)parent.hear();
    });
    for (int i = 0; i < kRounds; ++i) {
      send_once(client, kRequest);
      (void)reading.hear();
      answering.tell();
      receive_once(client, kReply);
    }
    for (Child* child : {&reading, &answering}) {
      child->tell();
      child->finish();
    }
    const auto both = [&](const char* name) { return first.value(name) + second.value(name); };
    CHECK(shared().wait_for([&] { return active(first) + active(second) == 0; }));
    CHECK(both("tacho_requests_total") == (watched ? kRounds : 0));
    if (watched) {
      // After three moves it stays, and all that follows counts there.
      CHECK(std::min(first.value("tacho_requests_total"), second.value("tacho_requests_total")) <= 3);
      const Labels served = {{"role", "server"}};
      CHECK(first.value("tacho_connections_total", served) + second.value("tacho_connections_total", served) == 4);
    }
    CHECK(both("tacho_requests_unanswered_total") == 0);
    // Two at most of a connection: the open turn, and one whose hook could still have come.
    CHECK(both("tacho_unseen_replies_total") == (watched ? 0 : 2));
    CHECK(first.value("tacho_requests_in_flight") == 0);
    CHECK(second.value("tacho_requests_in_flight") == 0);
  }
}
