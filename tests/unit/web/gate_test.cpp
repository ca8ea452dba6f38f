#include "web/gate.h"

#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <list>
#include <mutex>
#include <thread>

#include "client.h"

namespace tacho::web {
namespace {

using std::chrono_literals::operator""ms;
using test::Client;

/// A gate whose workers are the test itself: what is handed over waits here until it is told to end.
class Desk {
 public:
  explicit Desk(std::size_t workers, const GateLimits& limits) : in_flight_(std::move(*InFlight::create(workers))) {
    auto listener = Listener::open(*ListenAddress::parse("127.0.0.1:0"));
    REQUIRE(listener);
    address_ = listener->bound();
    std::vector<Listener> listeners;
    listeners.push_back(std::move(*listener));
    auto gate = Gate::open(std::move(listeners),
                           {.expects_tls = [] { return false; },
                            .hand_over =
                                [this](int socket, bool) {
                                  const std::lock_guard lock(mutex_);
                                  served_.push_back(socket);
                                  return true;
                                }},
                           *in_flight_, limits);
    REQUIRE(gate);
    gate_ = std::move(*gate);
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;
  ~Desk() {
    gate_.reset();
    while (end_oldest()) {
    }
  }

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const GateCounters& counters() const { return gate_->counters(); }
  [[nodiscard]] std::size_t served() {
    const std::lock_guard lock(mutex_);
    return served_.size();
  }

  /// What a worker does at its end; says "done" first.
  bool end_oldest() {
    int socket = -1;
    {
      const std::lock_guard lock(mutex_);
      if (served_.empty()) {
        return false;
      }
      socket = served_.front();
      served_.pop_front();
    }
    ::send(socket, "done", 4, MSG_NOSIGNAL);
    in_flight_->closing(socket);
    ::close(socket);
    in_flight_->closed();
    return true;
  }

 private:
  std::unique_ptr<InFlight> in_flight_;
  std::string address_;
  std::mutex mutex_;
  std::list<int> served_;
  std::unique_ptr<Gate> gate_;
};

template <class Condition>
bool eventually(const Condition& condition) {
  const auto start = std::chrono::steady_clock::now();
  while (test::since(start) < 10'000ms) {
    if (condition()) {
      return true;
    }
    std::this_thread::yield();
  }
  return false;
}

const std::string kRequest = "GET / HTTP/1.1\r\n\r\n";

TEST_CASE("A connection without a whole request is closed in time") {
  Desk desk(2, {.head_timeout = 50ms});
  const Client silent(desk.address());
  const Client partial(desk.address());
  partial.send("GET / HT");
  CHECK(silent.read_all().empty());
  CHECK(partial.read_all().empty());
  CHECK(eventually([&] { return desk.counters().timed_out == 2; }));
  CHECK(desk.served() == 0);
}

TEST_CASE("A connection that its client closes is forgotten, or a worker's to refuse if it has sent something") {
  Desk desk(3, {});
  {
    const Client silent(desk.address());
    const Client partial(desk.address());
    partial.send("GET / HT");
  }
  const Client whole(desk.address());
  whole.send(kRequest);
  CHECK(eventually([&] { return desk.served() == 2; }));
  CHECK(desk.counters().accepted == 3);
  CHECK(desk.counters().timed_out + desk.counters().displaced == 0);
}

TEST_CASE("The newest connections are kept when there are too many") {
  Desk desk(2, {.waiting = 5});
  std::list<Client> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back(desk.address());
    CHECK(eventually([&] { return desk.counters().accepted == static_cast<std::uint64_t>(i) + 1; }));
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(clients.front().read_all().empty());
    clients.pop_front();
  }
  CHECK(eventually([&] { return desk.counters().displaced == 3; }));
  clients.back().send(kRequest);
  CHECK(eventually([&] { return desk.served() == 1; }));
}

TEST_CASE("When all workers wait for slow clients, the slowest loses its own to the next request") {
  Desk desk(2, {.busy_patience = 100ms});
  const Client first(desk.address());
  first.send(kRequest);
  CHECK(eventually([&] { return desk.served() == 1; }));
  const Client second(desk.address());
  second.send(kRequest);
  CHECK(eventually([&] { return desk.served() == 2; }));
  const Client third(desk.address());
  third.send(kRequest);
  CHECK(first.read_all().empty());
  CHECK(eventually([&] { return desk.counters().cut_off == 1; }));  // the client sees it before the gate counts it
  desk.end_oldest();  // the worker notices
  CHECK(eventually([&] { return desk.served() == 2; }));
  while (desk.end_oldest()) {
  }
  CHECK(second.read_all() == "done");
  CHECK(third.read_all() == "done");
}

TEST_CASE("Without others waiting, a client still has an end") {
  Desk desk(2, {.client_timeout = 50ms});
  const Client client(desk.address());
  client.send(kRequest);
  CHECK(client.read_all().empty());
  CHECK(eventually([&] { return desk.counters().cut_off == 1; }));
}

TEST_CASE("When requests wait for workers, the newest is served first") {
  Desk desk(1, {});
  std::list<Client> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(desk.address()).send(kRequest);
    CHECK(eventually([&] { return desk.counters().accepted == static_cast<std::uint64_t>(i) + 1; }));
    CHECK(eventually([&] { return desk.served() >= 1; }));  // the first has the worker before others come
  }
  CHECK(eventually([&] { return desk.end_oldest(); }));
  CHECK(clients.front().read_all() == "done");
  CHECK(eventually([&] { return desk.served() == 1; }));
  CHECK(eventually([&] { return desk.end_oldest(); }));
  CHECK(clients.back().read_all() == "done");
}

}  // namespace
}  // namespace tacho::web
