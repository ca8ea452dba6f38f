// The table of whom datagram sockets serve and call, when it is full.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

/// More than the table has room for.
constexpr int kCalls = 20000;

/// Calls from a new socket each time, as a resolver does.
void call_from_many_sockets(const Watched& where) {
  const UniqueFd peer = bound_socket(0);
  const std::uint16_t port = port_of(peer);
  Child caller(where.directory(), [&](Line&) {
    for (int i = 0; i < kCalls; ++i) {
      const UniqueFd socket = bound_socket(0);
      send_to(socket, port);
      (void)spin_for(socket);
    }
  });
  send_back(peer, kCalls);
  caller.finish();
}

constexpr int kFlood = 20480;
constexpr int kAtOnce = 64;                   // fit into a socket's buffer
constexpr std::chrono::seconds kPatience{5};  // DATAGRAM_PATIENCE_NS

using Clock = std::chrono::steady_clock;

/// Another address of the loopback interface for each number.
in_addr loopback_address(int number) {
  return {.s_addr = htonl((127U << 24U) + (7U << 16U) + static_cast<unsigned>(number))};
}

/// Sends to the port from so many addresses; `taken` returns when what has been sent is taken.
template <class Taken>
void flood(std::uint16_t port, Taken taken) {
  const UniqueFd socket = datagram_socket();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < kFlood; ++i) {
    char byte = 'x';
    iovec part{.iov_base = &byte, .iov_len = 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(in_pktinfo))> control{};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof(to);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = IPPROTO_IP;
    header->cmsg_type = IP_PKTINFO;
    header->cmsg_len = CMSG_LEN(sizeof(in_pktinfo));
    const in_pktinfo from{.ipi_ifindex = 0, .ipi_spec_dst = loopback_address(i), .ipi_addr = {}};
    std::memcpy(CMSG_DATA(header), &from, sizeof(from));
    REQUIRE(::sendmsg(socket.get(), &message, 0) == 1);
    if ((i + 1) % kAtOnce == 0) {
      taken();
    }
  }
}

double lost() {
  return shared().page().value("tacho_lost_events_total", {{"probe", "socket"}, {"reason", "map_full"}});
}

/// A server that takes the requests of many clients, and answers all of them: at once, and then when it is told to.
class LateServer {
 public:
  static constexpr std::size_t kClients = 100;
  static constexpr int kRounds = 2;

  explicit LateServer(const std::string& cgroup)
      : child_(cgroup, [](Line& parent) {
          const UniqueFd socket = bound_socket(20137);
          parent.tell(port_of(socket));
          for (int round = 0; round < kRounds; ++round) {
            std::array<sockaddr_in, kClients> from{};
            for (sockaddr_in& client : from) {
              client = spin_for(socket);
            }
            parent.tell();
            (void)parent.hear();
            for (const sockaddr_in& client : from) {
              send_to(socket, ntohs(client.sin_port));
            }
            parent.tell();
          }
          (void)parent.hear();
        }) {
    port_ = static_cast<std::uint16_t>(child_.hear());
    for (std::size_t i = 0; i < kClients; ++i) {
      clients_.push_back(bound_socket(0));
    }
    ask();
    answer();
    ask();
  }

  void answer() {
    child_.tell();
    for (const UniqueFd& client : clients_) {
      (void)spin_for(client);
    }
    (void)child_.hear();
  }

  void end() {
    child_.tell();
    child_.finish();
  }

 private:
  void ask() {
    for (const UniqueFd& client : clients_) {
      send_to(client, port_);
    }
    (void)child_.hear();
  }

  Child child_;
  std::uint16_t port_ = 0;
  std::vector<UniqueFd> clients_;
};

}  // namespace

TEST_CASE("who floods a server that never answers makes nobody else's requests forgotten") {
  const Watched silent;
  const double lost_before = lost();
  constexpr int kTries = 10;
  for (int attempt = 0;; ++attempt) {
    // Nobody waits longer for a reply than that, and a machine that is busy with other things may take as long.
    REQUIRE(attempt < kTries);
    const Watched where;
    LateServer server(where.directory());
    const auto asked = Clock::now();
    Child sink(silent.directory(), [](Line& parent) {
      const UniqueFd socket = bound_socket(20237);
      parent.tell(port_of(socket));
      for (int taken = 0; taken < kFlood; taken += kAtOnce) {
        // What is read as it arrives may be read before the hook of its arrival has run, and be nobody's.
        (void)parent.hear();
        for (int i = 0; i < kAtOnce; ++i) {
          (void)spin_for(socket);
        }
        parent.tell();
      }
    });
    flood(static_cast<std::uint16_t>(sink.hear()), [&] {
      sink.tell();
      (void)sink.hear();
    });
    sink.finish();
    server.answer();
    const bool in_time = Clock::now() - asked < kPatience;
    if (in_time) {
      CHECK(where.value("tacho_requests_total") == LateServer::kRounds * LateServer::kClients);
      CHECK(where.value("tacho_requests_in_flight") == 0);
    }
    server.end();
    if (in_time) {
      break;
    }
  }
  CHECK(lost() == lost_before);
}

TEST_CASE("who calls more than the table holds forces out others, which is counted") {
  constexpr int kCalls = 32768;
  const Watched callers;
  const double lost_before = lost();
  const UniqueFd taken = bound_socket(0);
  Child caller(callers.directory(), [port = port_of(taken)](Line&) {
    const UniqueFd socket = bound_socket(0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    for (int i = 0; i < kCalls; ++i) {
      to.sin_addr = loopback_address(i);
      (void)::sendto(socket.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    }
  });
  caller.finish();
  const auto called = Clock::now();
  CHECK(lost() > lost_before);
  // For so long answers to these are awaited, and of that no event tells: later tests would find no room.
  std::this_thread::sleep_until(called + kPatience);
}

TEST_CASE("who waits for a reply is remembered, however many were called of late") {
  constexpr std::size_t kClients = 200;
  constexpr int kRounds = 20;
  const Watched callers;
  const Watched where;
  call_from_many_sockets(callers);
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd socket = bound_socket(20037);
    parent.tell(port_of(socket));
    for (int round = 0; round < kRounds; ++round) {
      std::array<sockaddr_in, kClients> from{};
      for (sockaddr_in& client : from) {
        client = spin_for(socket);
      }
      for (const sockaddr_in& client : from) {
        send_to(socket, ntohs(client.sin_port));
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int round = 0; round < kRounds; ++round) {
    std::vector<UniqueFd> clients;
    for (std::size_t i = 0; i < kClients; ++i) {
      clients.push_back(bound_socket(0));
      send_to(clients.back(), port);
    }
    for (const UniqueFd& client : clients) {
      (void)spin_for(client);
    }
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRounds * kClients);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(callers.value("tacho_requests_total") == 0);
  server.tell();
  server.finish();
}
