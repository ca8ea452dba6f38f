// Clients that connect to a unix socket at the same time.

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/place.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kClients = 4;
constexpr int kEach = 400;
constexpr int kRounds = 10;
constexpr auto kWaits = 20ms;
// One in a thousand: a hypervisor may stop a CPU amid a connect for longer than others need for 128 of them.
constexpr double kUnseen = kRounds * kClients * kEach / 1000.0;

/// Connects when it is told to, asks on each connection, and tells that; then waits for the answers.
Child client_of(const Place& place) {
  return Child("", [&place](Line& parent) {
    for (int round = 0; round < kRounds; ++round) {
      (void)parent.hear();
      std::vector<UniqueFd> connections;
      for (int i = 0; i < kEach; ++i) {
        connections.push_back(place.connect());
        send_once(connections.back(), 30);
      }
      parent.tell();
      for (const UniqueFd& connection : connections) {
        receive_once(connection, 20);
      }
      parent.tell();
    }
  });
}

}  // namespace

TEST_CASE("of clients that connect at the same time each one's request has waited until it is read") {
  const Place place(Place::Kind::unix_stream);
  const Watched where;
  Child server(where.directory(), [&place](Line& parent) {
    const UniqueFd listener = place.listen();
    must(::listen(listener.get(), kClients * kEach) == 0, "listen");
    parent.tell();
    for (int round = 0; round < kRounds; ++round) {
      (void)parent.hear();
      std::this_thread::sleep_for(kWaits);
      for (int i = 0; i < kClients * kEach; ++i) {
        serve(place.accept(listener), 1, 30, 20);
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)server.hear();
  std::array<Child, kClients> clients{client_of(place), client_of(place), client_of(place), client_of(place)};
  for (int round = 0; round < kRounds; ++round) {
    std::ranges::for_each(clients, [](const Child& client) { client.tell(); });
    std::ranges::for_each(clients, [](const Child& client) { (void)client.hear(); });
    server.tell();
    std::ranges::for_each(clients, [](const Child& client) { (void)client.hear(); });
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRounds * kClients * kEach);
  const double least = std::chrono::duration<double>(kWaits).count();
  for (const char* time : {"tacho_request_queue_seconds", "tacho_request_duration_seconds"}) {
    CAPTURE(time);
    double at_once = 0;
    for (const auto& [bound, count] : shared().page().buckets(time, {{"cgroup", where.path()}})) {
      at_once += bound < least ? count : 0;
    }
    CHECK(at_once <= kUnseen);
  }
  server.tell();
  server.finish();
  std::ranges::for_each(clients, [](Child& client) { client.finish(); });
}
