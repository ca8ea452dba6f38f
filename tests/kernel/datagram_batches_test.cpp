// Servers of datagrams that read and answer in batches, on one socket a thread, as name servers do.

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 15'000;
constexpr std::size_t kMostAtOnce = 10;
constexpr int kOpen = 20;

/// One of the sockets that share a port. @param port 0: one that the kernel gives
UniqueFd shared_socket(std::uint16_t port) {
  UniqueFd socket = datagram_socket();
  const int on = 1;
  const timeval patience{.tv_sec = 0, .tv_usec = 100'000};
  const auto address = loopback(port);
  must(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0, "SO_REUSEPORT");
  must(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) == 0, "SO_RCVTIMEO");
  must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "bind");
  return socket;
}

bool answer_came(const UniqueFd& socket) {
  std::array<char, kDatagramBytes> data{};
  const auto got = ::recv(socket.get(), data.data(), data.size(), MSG_DONTWAIT);
  must(got >= 0 || errno == EAGAIN, "recv");
  return got >= 0;
}

/// Asks from a few sockets, with `kOpen` requests open at any time: one thread sends, another one takes the answers.
void ask_all(std::uint16_t port, std::size_t sockets) {
  std::vector<UniqueFd> asking;
  for (std::size_t i = 0; i < sockets; ++i) {
    asking.push_back(bound_socket(0));
    connect_to(asking.back(), port);
  }
  std::atomic<int> answered = 0;
  std::atomic<bool> gave_up = false;
  const std::jthread sender([&] {
    for (int sent = 0; sent < kRequests && !gave_up;) {
      if (sent - answered < kOpen) {
        send_once(asking[static_cast<std::size_t>(sent++) % sockets], kDatagramBytes);
      } else {
        std::this_thread::yield();
      }
    }
  });
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (answered < kRequests && !gave_up) {
    const int before = answered;
    for (const UniqueFd& socket : asking) {
      while (answer_came(socket)) {
        ++answered;
      }
    }
    if (answered == before) {
      std::this_thread::yield();
      gave_up = std::chrono::steady_clock::now() > deadline;
    } else {
      deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    }
  }
  REQUIRE(answered == kRequests);
}

/// Something else to do for all CPUs: hooks are interrupted, and the datagrams that they tell of are read before.
class Busy {
 public:
  Busy() {
    for (unsigned cpu = 0; cpu < std::thread::hardware_concurrency(); ++cpu) {
      spinning_.emplace_back([](const std::stop_token& over) {
        while (!over.stop_requested()) {
        }
      });
    }
  }

 private:
  std::vector<std::jthread> spinning_;
};

}  // namespace

TEST_CASE("servers that share a port, and answer in batches, are counted exactly") {
  const auto threads = static_cast<std::size_t>(GENERATE(1, 2));
  CAPTURE(threads);
  const Watched where;
  Child server(where.directory(), [threads](Line& parent) {
    std::vector<UniqueFd> sockets;
    for (std::size_t i = 0; i < threads; ++i) {
      sockets.push_back(shared_socket(i == 0 ? 0 : port_of(sockets.front())));
    }
    parent.tell(port_of(sockets.front()));
    std::atomic<int> answered = 0;
    {
      std::vector<std::jthread> serving;
      for (const UniqueFd& socket : sockets) {
        serving.emplace_back([&] { serve_in_batches(socket, kMostAtOnce, kRequests, answered); });
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  {
    const Busy cpus;
    ask_all(static_cast<std::uint16_t>(server.hear()), 4 * threads);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(shared().page().sum("tacho_dependency_calls_total", {{"cgroup", where.path()}}) == 0);
  server.tell();
  server.finish();
}
