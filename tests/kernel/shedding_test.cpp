// What a target does without stands still, everything else stays exact, and back at a lower level all goes on.

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/lib/targets.h"
#include "bpf/socket.h"
#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/place.h"
#include "kernel/support/polls.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kAsked = 23;
constexpr std::size_t kRequestBytes = 10;
constexpr std::size_t kReplyBytes = 20;

/// A tacho that watches one cgroup and does without what the test says.
class Held {
 public:
  explicit Held(const std::string& path) : config_(watching(path)), tacho_(config_) {}

  void set(tacho_shed level) {
    config_.limits.held_shed_level = level;
    tacho_.app().scraper().reconfigure(config_);
    REQUIRE(tacho_.wait_for([&] { return sum("tacho_shed_level") == static_cast<unsigned>(level); }));
  }
  [[nodiscard]] double value(const std::string& name, const Labels& labels = {}) {
    return tacho_.page().value(name, labels);
  }
  [[nodiscard]] double sum(const std::string& name, const Labels& labels = {}) {
    return tacho_.page().sum(name, labels);
  }
  [[nodiscard]] double requests() { return value("tacho_requests_total"); }
  [[nodiscard]] bool holds(const std::string& condition) {
    return sum("tacho_target_condition", {{"condition", condition}}) == 1;
  }
  [[nodiscard]] Running& running() { return tacho_; }
  void await_sample() {
    const auto samples = [&] {
      return tacho_.app().scraper().view([](const tacho::scrape::State& state) { return state.tick; });
    };
    REQUIRE(tacho_.wait_for([&, first = samples()] { return samples() > first; }));
  }

 private:
  tacho::config::Config config_;
  Running tacho_;
};

const Labels kReceive{{"direction", "receive"}};
const Labels kSend{{"direction", "send"}};
/// Requests of unix sockets count when they are answered: nothing tells the end of such a connection.
constexpr std::array kKinds{Place::Kind::tcp, Place::Kind::unix_stream};

/// A server of one connection that reads a request when it hears 1, answers it at 2, does both at 3, and ends at 0;
/// it tells when that is done.
Child obedient(const std::string& directory, const Place& place) {
  return Child(directory, [&place](Line& parent) {
    const UniqueFd listener = place.listen();
    parent.tell();
    const UniqueFd connection = place.accept(listener);
    while (const auto what = parent.hear()) {
      if ((what & 1) != 0) {
        receive_once(connection, kRequestBytes);
      }
      if ((what & 2) != 0) {
        send_once(connection, kReplyBytes);
      }
      parent.tell();
    }
  });
}

void order(const Child& child, std::uint64_t what) {
  child.tell(what);
  (void)child.hear();
}

/// A request that an obedient server reads and answers.
void exchange_with(const Child& server, const UniqueFd& client) {
  send_once(client, kRequestBytes);
  order(server, 3);
  receive_once(client, kReplyBytes);
}

}  // namespace

TEST_CASE("intervals that are shed stand still, and operations and requests are exact at each level") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Held tacho(cgroup.path());
  Server server(cgroup.directory());
  int asked = 0;
  const auto ask = [&] {
    server.ask(kAsked);
    asked += kAsked;
    CHECK(tacho.requests() == asked);
    for (const Labels& direction : {kReceive, kSend}) {
      CHECK(tacho.value("tacho_socket_operations_total", direction) == asked);
    }
    CHECK(tacho.value("tacho_socket_bytes_total", kReceive) == asked * double{Server::kRequest});
    CHECK(tacho.value("tacho_request_duration_seconds_count") == asked);
    CHECK(tacho.value("tacho_requests_in_flight") == 0);
  };
  ask();
  CHECK(tacho.value("tacho_socket_intervals_total", kReceive) == kAsked - 1);
  CHECK_FALSE(tacho.holds("shed"));
  CHECK(tacho.running().page().count("tacho_shed_level") == 0);
  tacho.set(TACHO_SHED_INTERVALS);
  CHECK(tacho.holds("shed"));
  CHECK_FALSE(tacho.holds("shed_requests"));
  const auto intervals_s = [&] { return tacho.value("tacho_socket_interval_seconds_total", kReceive); };
  const double before_s = intervals_s();
  ask();
  const std::int64_t last_ns = now_ns();
  CHECK(tacho.value("tacho_socket_intervals_total", kReceive) == kAsked - 1);
  CHECK(tacho.value("tacho_socket_idle_gaps_total", kReceive) == 0);
  CHECK(intervals_s() == before_s);
  tacho.set(TACHO_SHED_NOTHING);
  ask();
  // The first one has an interval, too: since the last operation, whose time was kept.
  CHECK(tacho.value("tacho_socket_intervals_total", kReceive) + tacho.value("tacho_socket_idle_gaps_total", kReceive) ==
        kAsked - 1 + kAsked);
  CHECK(intervals_s() - before_s < 1e-9 * static_cast<double>(now_ns() - last_ns) + 1);
  server.finish();
}

TEST_CASE("polls that are shed stand still; a wait that was under way ends, and one that was not seen begin is none") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Held tacho(cgroup.path());
  const auto wait = [](const Watchable& what, int timeout_ms) { return poll_calls().front().wait(what, timeout_ms); };
  constexpr int kPolls = 7;
  // At 1 it waits until somebody makes the gate readable; at 2 it polls a few times.
  Child child(cgroup.directory(), [&](Line& parent) {
    while (const auto what = parent.hear()) {
      const Watchable gate(false);
      if (what == 1) {
        parent.tell();
        // The gate is opened from within: by the next word, which another thread of nobody waits for.
        must(wait(gate, 3'000) == 0, "timeout");
      }
      for (int i = 0; what == 2 && i < kPolls; ++i) {
        must(wait(gate, 1) == 0, "poll");
      }
      parent.tell();
    }
  });
  const auto completed = [&] {
    await_rest(tacho.running(), child);
    return completed_polls(tacho.running().page(), {{"target", "t"}});
  };
  order(child, 2);
  CHECK(completed() == kPolls);
  child.tell(1);
  (void)child.hear();
  REQUIRE(tacho.running().wait_for([&] { return tacho.value("tacho_poll_waiters") == 1; }));
  tacho.set(TACHO_SHED_POLLS);
  CHECK(tacho.value("tacho_poll_waiters") == 1);
  (void)child.hear();
  CHECK(completed() == kPolls + 1);
  CHECK(tacho.value("tacho_poll_waiters") == 0);
  const double idle = tacho.value("tacho_idle_seconds_total");
  CHECK(idle > 3);
  CHECK(idle < 4);
  order(child, 2);
  child.tell(1);
  (void)child.hear();
  CHECK(completed() == kPolls + 1);
  CHECK(tacho.value("tacho_poll_waiters") == 0);
  tacho.set(TACHO_SHED_NOTHING);
  (void)child.hear();
  CHECK(completed() == kPolls + 1);
  CHECK(tacho.value("tacho_poll_waiters") == 0);
  CHECK(tacho.value("tacho_idle_seconds_total") == idle);
  order(child, 2);
  CHECK(completed() == 2 * kPolls + 1);
  CHECK(tacho.value("tacho_threads") == 1);
  child.tell(0);
  child.finish();
}

TEST_CASE("requests of which anatomy is shed have no parts, nor those that are open when it is, or is no longer") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Held tacho(cgroup.path());
  const Place place(Place::Kind::tcp);
  Child child = obedient(cgroup.directory(), place);
  const UniqueFd client = connect_to(child, place);
  const auto mode = [&](const std::string& name) {
    return tacho.value("tacho_request_serving_total", {{"mode", name}});
  };
  const auto parts = [&] { return tacho.sum("tacho_request_time_seconds_total"); };
  const auto exchange = [&] {
    for (int i = 0; i < kAsked; ++i) {
      send_once(client, kRequestBytes);
      order(child, 3);
      receive_once(client, kReplyBytes);
    }
  };
  exchange();
  REQUIRE(mode("same_thread") == kAsked);
  // Read before, answered meanwhile.
  send_once(client, kRequestBytes);
  order(child, 1);
  tacho.set(TACHO_SHED_ANATOMY);
  const double before_s = parts();
  order(child, 2);
  exchange();
  CHECK(tacho.requests() == 2 * kAsked + 1);
  CHECK(mode("same_thread") == kAsked);
  CHECK(mode("unknown") == kAsked + 1);
  CHECK(parts() == before_s);
  // Read meanwhile, answered afterwards.
  send_once(client, kRequestBytes);
  order(child, 1);
  tacho.set(TACHO_SHED_NOTHING);
  order(child, 2);
  CHECK(mode("unknown") == kAsked + 2);
  CHECK(mode("handed_over") == 0);
  CHECK(parts() == before_s);
  const double duration_s = tacho.value("tacho_request_duration_seconds_sum");
  receive_once(client, kReplyBytes);
  receive_once(client, kReplyBytes);
  exchange();
  CHECK(mode("same_thread") == 2 * kAsked);
  CHECK(parts() - before_s == Approx(tacho.value("tacho_request_duration_seconds_sum") - duration_s).epsilon(1e-6));
  // Read before, answered afterwards; a wait of its thread in between was not seen.
  send_once(client, kRequestBytes);
  order(child, 1);
  tacho.set(TACHO_SHED_ANATOMY);
  order(child, 4);
  tacho.set(TACHO_SHED_NOTHING);
  const double after_s = parts();
  order(child, 2);
  CHECK(mode("same_thread") == 2 * kAsked);
  CHECK(mode("unknown") == kAsked + 3);
  CHECK(parts() == after_s);
  CHECK(tacho.requests() == 3 * kAsked + 3);
  child.tell(0);
  child.finish();
}

namespace {

/// A frame of HTTP/2 with the header of that type.
std::string headers_frame(std::uint32_t stream) {
  constexpr std::size_t kLength = 12;
  std::string text{'\0', '\0', static_cast<char>(kLength), '\1', '\4', '\0', '\0'};
  text.push_back(static_cast<char>(stream >> 8));
  text.push_back(static_cast<char>(stream & 0xff));
  return text + std::string(kLength, 'x');
}

const std::string kSettingsFrame("\0\0\0\4\0\0\0\0\0", 9);
const std::string kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + kSettingsFrame;

/// A server that reads as many bytes as it hears and sends replies to as many streams from the one that it hears.
Child stream_server(const std::string& directory, const Place& place) {
  return Child(directory, [&place](Line& parent) {
    const UniqueFd listener = place.listen();
    parent.tell();
    const UniqueFd connection = place.accept(listener);
    while (const auto bytes = static_cast<std::size_t>(parent.hear())) {
      receive_once(connection, bytes);
      auto stream = static_cast<std::uint32_t>(parent.hear());
      std::string reply;
      for (auto count = parent.hear(); count > 0; --count, stream += 2) {
        reply += headers_frame(stream);
      }
      if (!reply.empty()) {
        send_bytes(connection, reply);
      }
      parent.tell();
    }
  });
}

}  // namespace

TEST_CASE("where streams are shed turns of HTTP/2 count, what was in flight is not, and streams count again later") {
  const auto kind = GENERATE(from_range(kKinds));
  CAPTURE(name_of(kind));
  const double counted_at_once = kind == Place::Kind::tcp ? 1 : 0;
  const Cgroup cgroup(playground() + "/" + unique_name());
  Held tacho(cgroup.path());
  const Place place(kind);
  Child child = stream_server(cgroup.directory(), place);
  const UniqueFd client = connect_to(child, place);
  std::uint32_t next = 1;
  constexpr std::uint64_t kAtOnce = 3;
  /// Asks so many streams in one message, of which the first `answered` are answered in another one.
  const auto ask = [&](std::uint64_t streams, std::uint64_t answered, std::string text = {}) {
    const std::uint32_t first = next;
    for (std::uint64_t i = 0; i < streams; ++i, next += 2) {
      text += headers_frame(next);
    }
    send_bytes(client, text);
    child.tell(text.size());
    child.tell(first);
    child.tell(answered);
    (void)child.hear();
  };
  ask(kAtOnce, kAtOnce, kClientPreface);
  for (int i = 1; i < kAsked; ++i) {
    ask(kAtOnce, kAtOnce);
  }
  REQUIRE(tacho.requests() == double{kAtOnce} * kAsked);
  ask(kAtOnce, 1);
  CHECK(tacho.value("tacho_requests_in_flight") == counted_at_once * (kAtOnce - 1));
  double requests = kAtOnce * double{kAsked} + 1;
  tacho.set(TACHO_SHED_ANATOMY);
  CHECK(tacho.value("tacho_requests_in_flight") == counted_at_once * (kAtOnce - 1));
  tacho.set(TACHO_SHED_STREAMS);
  CHECK(tacho.holds("shed_requests"));
  for (int i = 0; i < kAsked; ++i) {
    ask(kAtOnce, kAtOnce);
  }
  requests += kAsked;
  CHECK(tacho.requests() == requests);
  CHECK(tacho.value("tacho_requests_in_flight") == 0);
  CHECK(tacho.value("tacho_requests_unanswered_total") == 0);
  ask(kAtOnce, 0);
  CHECK(tacho.value("tacho_requests_in_flight") == counted_at_once);
  tacho.set(TACHO_SHED_NOTHING);
  for (int i = 0; i < kAsked; ++i) {
    ask(kAtOnce, kAtOnce);
  }
  requests += double{kAtOnce} * kAsked;
  CHECK(tacho.requests() == requests);
  CHECK(tacho.value("tacho_requests_in_flight") == 0);
  CHECK(tacho.value("tacho_requests_unanswered_total") == 0);
  child.tell(0);
  child.finish();
  CHECK(tacho.value("tacho_requests_unanswered_total") == 0);
}

TEST_CASE("a connection of HTTP/2 that begins while streams are shed is followed later") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Held tacho(cgroup.path());
  const auto level = GENERATE(TACHO_SHED_STREAMS, TACHO_SHED_SOCKETS);
  const auto kind = GENERATE(from_range(kKinds));
  CAPTURE(name_of(kind));
  tacho.set(level);
  const Place place(kind);
  Child child = stream_server(cgroup.directory(), place);
  const UniqueFd client = connect_to(child, place);
  const auto ask = [&](std::uint32_t first, std::string text = {}) {
    text += headers_frame(first) + headers_frame(first + 2);
    send_bytes(client, text);
    child.tell(text.size());
    child.tell(first);
    child.tell(2);
    (void)child.hear();
  };
  ask(1, kClientPreface);
  CHECK(tacho.requests() == 1);
  tacho.set(TACHO_SHED_NOTHING);
  ask(5);
  ask(9);
  CHECK(tacho.requests() == 1 + 4);
  CHECK(tacho.value("tacho_requests_in_flight") == 0);
  child.tell(0);
  child.finish();
}

TEST_CASE("turns of one connection in sixteen stand for all, and all count again later") {
  constexpr int kConnections = 2 * TACHO_CHOSEN_CONNECTIONS;
  const auto kind = GENERATE(from_range(kKinds));
  CAPTURE(name_of(kind));
  const Cgroup cgroup(playground() + "/" + unique_name());
  Held tacho(cgroup.path());
  const Place place(kind);
  // It answers so many requests on each connection as it is told.
  Child child(cgroup.directory(), [&](Line& parent) {
    const UniqueFd listener = place.listen();
    parent.tell();
    std::vector<UniqueFd> connections;
    for (int i = 0; i < kConnections; ++i) {
      connections.push_back(place.accept(listener));
    }
    while (const auto count = static_cast<int>(parent.hear())) {
      for (const UniqueFd& connection : connections) {
        serve(connection, count, kRequestBytes, kReplyBytes);
      }
      parent.tell();
    }
  });
  (void)child.hear();
  std::vector<UniqueFd> clients;
  for (int i = 0; i < kConnections; ++i) {
    clients.push_back(place.connect());
  }
  double asked = 0;
  const auto ask_all = [&](int count) {
    child.tell(static_cast<std::uint64_t>(count));
    for (const UniqueFd& client : clients) {
      ask(client, count, kRequestBytes, kReplyBytes);
    }
    (void)child.hear();
    asked += kConnections * count;
  };
  ask_all(1);
  REQUIRE(tacho.requests() == asked);
  double before = tacho.requests();
  tacho.set(TACHO_SHED_SOCKETS);
  CHECK(tacho.requests() == before);
  for (int round = 1; round < 4; ++round) {
    ask_all(10 * round);
    CHECK(tacho.value("tacho_socket_operations_total", kReceive) == asked);
    CHECK(tacho.value("tacho_socket_operations_total", kSend) == asked);
    CHECK(tacho.requests() >= before);
    // Two of them were followed, and their operations are as many a request as the others'.
    CHECK(tacho.running().wait_for([&] { return tacho.requests() == asked; }));
    CHECK(tacho.value("tacho_request_duration_seconds_count") == asked);
    CHECK(tacho.value("tacho_requests_in_flight") == 0);
    before = asked;
  }
  tacho.set(TACHO_SHED_NOTHING);
  CHECK(tacho.requests() == asked);
  ask_all(kAsked);
  CHECK(tacho.requests() == asked);
  CHECK(tacho.value("tacho_requests_in_flight") == 0);
  CHECK(tacho.value("tacho_requests_unanswered_total") == 0);
  if (kind == Place::Kind::tcp) {
    CHECK(tacho.value("tacho_connections_active", {{"role", "server"}}) == kConnections);
  }
  child.tell(0);
  child.finish();
}

TEST_CASE("where the chosen connections do nothing, others are chosen") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Held tacho(cgroup.path());
  // The first one is chosen; then only the second one is used.
  const std::array<Place, 2> places{Place(Place::Kind::tcp), Place(Place::Kind::tcp)};
  std::array<Child, 2> servers{obedient(cgroup.directory(), places[0]), obedient(cgroup.directory(), places[1])};
  const std::array<UniqueFd, 2> clients{connect_to(servers[0], places[0]), connect_to(servers[1], places[1])};
  const auto exchange = [&](std::size_t which) { exchange_with(servers.at(which), clients.at(which)); };
  exchange(0);
  exchange(1);
  tacho.set(TACHO_SHED_SOCKETS);
  exchange(0);
  tacho.await_sample();
  REQUIRE(tacho.requests() == 3);
  for (int i = 0; i < kAsked; ++i) {
    exchange(1);
  }
  tacho.await_sample();
  CHECK(tacho.requests() == 3);
  // The next request stands for those before.
  exchange(1);
  const double asked = 3 + kAsked + 1;
  tacho.await_sample();
  CHECK(tacho.requests() == asked);
  CHECK(tacho.value("tacho_requests_in_flight") == 0);
  tacho.set(TACHO_SHED_NOTHING);
  exchange(0);
  exchange(1);
  CHECK(tacho.requests() == asked + 2);
  for (const Child& server : servers) {
    server.tell(0);
  }
  for (Child& server : servers) {
    server.finish();
  }
}

TEST_CASE(
    "a request that is open when turns of its connection are shed counts once, and one that ends later does not") {
  const auto kind = GENERATE(from_range(kKinds));
  CAPTURE(name_of(kind));
  const Cgroup cgroup(playground() + "/" + unique_name());
  Held tacho(cgroup.path());
  // The first one is chosen; the second one is put aside.
  const std::array<Place, 2> places{Place(kind), Place(kind)};
  std::array<Child, 2> servers{obedient(cgroup.directory(), places[0]), obedient(cgroup.directory(), places[1])};
  const std::array<UniqueFd, 2> clients{connect_to(servers[0], places[0]), connect_to(servers[1], places[1])};
  const auto exchange = [&](std::size_t which) { exchange_with(servers.at(which), clients.at(which)); };
  exchange(0);
  exchange(1);
  send_once(clients[1], kRequestBytes);
  order(servers[1], 1);
  CHECK(tacho.value("tacho_requests_in_flight") == (kind == Place::Kind::tcp ? 1 : 0));
  tacho.set(TACHO_SHED_SOCKETS);
  exchange(0);
  order(servers[1], 2);
  receive_once(clients[1], kReplyBytes);
  CHECK(tacho.requests() == 4);
  CHECK(tacho.value("tacho_requests_in_flight") == 0);
  // One that is read meanwhile, and answered afterwards, was not seen begin.
  send_once(clients[1], kRequestBytes);
  order(servers[1], 1);
  CHECK(tacho.value("tacho_requests_in_flight") == 0);
  tacho.set(TACHO_SHED_NOTHING);
  const double before = tacho.requests();
  order(servers[1], 2);
  receive_once(clients[1], kReplyBytes);
  CHECK(tacho.requests() == before);
  const double sum_s = tacho.value("tacho_request_duration_seconds_sum");
  const std::int64_t began_ns = now_ns();
  for (int i = 0; i < kAsked; ++i) {
    exchange(1);
  }
  CHECK(tacho.requests() == before + kAsked);
  CHECK(tacho.value("tacho_request_duration_seconds_sum") - sum_s < 1e-9 * static_cast<double>(now_ns() - began_ns));
  CHECK(tacho.value("tacho_requests_in_flight") == 0);
  for (const Child& server : servers) {
    server.tell(0);
  }
  for (Child& server : servers) {
    server.finish();
  }
}
