// A datagram server that is never idle: arrivals are told late, out of order, or while another one is read.

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr std::size_t kAskers = 3;
constexpr std::size_t kSockets = 12;
constexpr int kRounds = 2000;
constexpr int kRequests = kAskers * kSockets * kRounds;
constexpr std::size_t kMostAtOnce = 16;

/// Asks from new sockets each time, all at once.
void ask_from_new_sockets(std::uint16_t port) {
  for (int round = 0; round < kRounds; ++round) {
    std::vector<UniqueFd> sockets;
    for (std::size_t i = 0; i < kSockets; ++i) {
      sockets.push_back(bound_socket(0));
      send_to(sockets.back(), port);
    }
    for (const UniqueFd& socket : sockets) {
      (void)spin_for(socket);
    }
  }
}

}  // namespace

TEST_CASE("a busy datagram server is counted exactly, however late its arrivals are told") {
  const int threads = GENERATE(1, 3);
  CAPTURE(threads);
  const Watched where;
  Child server(where.directory(), [threads](Line& parent) {
    const UniqueFd socket = bound_socket(20051);
    const timeval patience{.tv_sec = 0, .tv_usec = 100'000};
    must(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0, "SO_RCVTIMEO");
    parent.tell(port_of(socket));
    std::atomic<int> answered = 0;
    {
      std::vector<std::jthread> serving;
      for (int i = 0; i < threads; ++i) {
        serving.emplace_back([&] { serve_in_batches(socket, kMostAtOnce, kRequests, answered); });
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  {
    std::vector<std::jthread> askers;
    for (std::size_t i = 0; i < kAskers; ++i) {
      askers.emplace_back(ask_from_new_sockets, port);
    }
  }
  (void)server.hear();
  // Of several threads the hooks may run in another order than they took the datagrams.
  const double most_missing = threads == 1 ? 0 : 0.0005 * kRequests;
  CHECK(where.value("tacho_requests_total") >= kRequests - most_missing);
  CHECK(where.value("tacho_requests_total") <= kRequests);
  CHECK(where.value("tacho_requests_in_flight") <= most_missing);
  server.tell();
  server.finish();
}

TEST_CASE("answers that come from two at once are each counted for the one that was called") {
  constexpr int kCalls = 5000;
  const Watched where;
  std::array<UniqueFd, 2> peers{bound_socket(0), bound_socket(0)};
  const std::array<std::uint16_t, 2> ports{port_of(peers[0]), port_of(peers[1])};
  Child caller(where.directory(), [&ports](Line& parent) {
    for (int i = 0; i < kCalls; ++i) {
      const UniqueFd socket = bound_socket(0);
      for (const std::uint16_t port : ports) {
        send_to(socket, port);
      }
      for (std::size_t answers = 0; answers < ports.size(); ++answers) {
        (void)spin_for(socket);
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  {
    std::vector<std::jthread> answering;
    for (const UniqueFd& peer : peers) {
      answering.emplace_back([&peer] { send_back(peer, kCalls); });
    }
  }
  (void)caller.hear();
  for (const std::uint16_t port : ports) {
    CHECK(where.value("tacho_dependency_calls_total", {{"peer", "127.0.0.1:" + std::to_string(port)}}) == kCalls);
  }
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  caller.tell();
  caller.finish();
}
