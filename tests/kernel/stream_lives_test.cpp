// Lives of connections that few servers lead: what a socket's options and flags do to reads and sends. Each against
// known counts.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRounds = 7;
constexpr std::size_t kSize = 10;

void set(const UniqueFd& socket, int level, int option, int value) {
  must(::setsockopt(socket.get(), level, option, &value, sizeof(value)) == 0, "setsockopt");
}

void send_urgent(const UniqueFd& socket) {
  must(::send(socket.get(), "!", 1, MSG_OOB) == 1, "MSG_OOB");
}

void receive_urgent(const UniqueFd& socket) {
  pollfd waiting{.fd = socket.get(), .events = POLLPRI, .revents = 0};
  must(::poll(&waiting, 1, 10'000) == 1, "the urgent byte");
  char byte = 0;
  must(::recv(socket.get(), &byte, 1, MSG_OOB) == 1, "MSG_OOB");
}

/// Until as much has come as the low-water mark asks for. A call that has taken a piece of it already would not be told
/// of the rest: the kernel compares with what is still to be read (tcp_epollin_ready).
void await_input(const UniqueFd& socket) {
  pollfd waiting{.fd = socket.get(), .events = POLLIN, .revents = 0};
  must(::poll(&waiting, 1, 10'000) == 1, "input");
}

/// What both sides do on one connection, `kRounds` times.
struct Life {
  std::string name;
  std::function<void(const UniqueFd&)> serve;
  std::function<void(const UniqueFd&)> ask;
  int requests_a_round = 1;
};

std::vector<Life> lives() {
  const auto answer = [](const UniqueFd& connection) { send_once(connection, kSize); };
  const auto plainly = [](const UniqueFd& client) {
    send_once(client, kSize);
    receive_once(client, kSize);
  };
  const auto then_urgent = [](const UniqueFd& client) {
    send_once(client, kSize);
    send_urgent(client);
    receive_once(client, kSize);
  };
  return {
      {"an urgent byte behind a request",
       [=](const UniqueFd& connection) {
         receive_once(connection, kSize);
         receive_urgent(connection);
         answer(connection);
       },
       then_urgent},
      {"an urgent byte that is read first",
       [=](const UniqueFd& connection) {
         receive_urgent(connection);
         receive_once(connection, kSize);
         answer(connection);
       },
       then_urgent},
      {"an urgent byte in line",
       [=](const UniqueFd& connection) {
         set(connection, SOL_SOCKET, SO_OOBINLINE, 1);
         receive_once(connection, kSize);
         receive_once(connection, 1);
         answer(connection);
       },
       then_urgent},
      {"an urgent byte alone",
       [=](const UniqueFd& connection) {
         receive_urgent(connection);
         answer(connection);
       },
       [](const UniqueFd& client) {
         send_urgent(client);
         receive_once(client, kSize);
       }},
      {"an urgent byte that nobody reads",
       [=](const UniqueFd& connection) {
         receive_once(connection, kSize);
         answer(connection);
       },
       then_urgent},
      {"an urgent reply",
       [](const UniqueFd& connection) {
         receive_once(connection, kSize);
         send_urgent(connection);
       },
       [](const UniqueFd& client) {
         send_once(client, kSize);
         receive_urgent(client);
       }},
      {"a low-water mark above the pieces",
       [=](const UniqueFd& connection) {
         set(connection, SOL_SOCKET, SO_RCVLOWAT, 2 * kSize);
         await_input(connection);
         std::array<char, 4 * kSize> buffer{};
         must(::recv(connection.get(), buffer.data(), buffer.size(), 0) == 2 * kSize, "recv");
         answer(connection);
       },
       [](const UniqueFd& client) {
         send_once(client, kSize);
         send_once(client, kSize);
         receive_once(client, kSize);
       }},
      {"what is thrown away unread",
       [=](const UniqueFd& connection) {
         must(::recv(connection.get(), nullptr, kSize, MSG_TRUNC | MSG_WAITALL) == kSize, "MSG_TRUNC");
         answer(connection);
       },
       plainly},
      {"looked at twice, then read",
       [=](const UniqueFd& connection) {
         std::array<char, kSize> buffer{};
         for (const int flags : std::array<int, 2>{MSG_PEEK, MSG_PEEK | MSG_TRUNC}) {
           must(::recv(connection.get(), buffer.data(), kSize, flags) > 0, "MSG_PEEK");
         }
         receive_once(connection, kSize);
         answer(connection);
       },
       plainly},
      {"an empty buffer first",
       [=](const UniqueFd& connection) {
         std::array<char, kSize> buffer{};
         std::array<iovec, 2> parts{{{nullptr, 0}, {buffer.data(), buffer.size()}}};
         must(::readv(connection.get(), parts.data(), 2) == kSize, "readv");
         must(::writev(connection.get(), parts.data(), 2) == kSize, "writev");
       },
       plainly},
      {"by calls with flags",
       [=](const UniqueFd& connection) {
         std::array<char, kSize> buffer{};
         const iovec part{buffer.data(), buffer.size()};
         must(::preadv2(connection.get(), &part, 1, -1, 0) == kSize, "preadv2");
         must(::pwritev2(connection.get(), &part, 1, -1, 0) == kSize, "pwritev2");
       },
       plainly},
      {"nothing sent, nothing read, in between",
       [=](const UniqueFd& connection) {
         receive_once(connection, kSize);
         must(::recv(connection.get(), nullptr, 0, MSG_DONTWAIT) <= 0, "recv");
         must(::send(connection.get(), nullptr, 0, 0) == 0, "send");
         answer(connection);
       },
       plainly},
      {"two messages of a request by one call, two of a reply",
       [](const UniqueFd& connection) {
         std::array<char, 2 * kSize> buffer{};
         std::array<iovec, 2> parts{{{buffer.data(), kSize}, {buffer.data() + kSize, kSize}}};
         std::array<mmsghdr, 2> messages{};
         for (std::size_t i = 0; i < 2; ++i) {
           messages[i].msg_hdr.msg_iov = &parts[i];
           messages[i].msg_hdr.msg_iovlen = 1;
         }
         must(::recvmmsg(connection.get(), messages.data(), 2, MSG_WAITALL, nullptr) == 2, "recvmmsg");
         must(::sendmmsg(connection.get(), messages.data(), 2, 0) == 2, "sendmmsg");
       },
       [](const UniqueFd& client) {
         send_once(client, 2 * kSize);
         receive_once(client, 2 * kSize);
       }},
      {"a reply that waits for more",
       [](const UniqueFd& connection) {
         receive_once(connection, kSize);
         must(::send(connection.get(), "head", 4, MSG_MORE) == 4, "MSG_MORE");
         must(::send(connection.get(), "bodies", 6, 0) == 6, "send");
       },
       plainly},
      {"by another number of the same socket",
       [](const UniqueFd& connection) {
         const UniqueFd twin(::dup(connection.get()));
         receive_once(twin, kSize);
         send_once(connection, kSize);
       },
       plainly},
      {"acknowledged at once, and late",
       [=](const UniqueFd& connection) {
         set(connection, IPPROTO_TCP, TCP_QUICKACK, 1);
         receive_once(connection, kSize);
         set(connection, IPPROTO_TCP, TCP_QUICKACK, 0);
         answer(connection);
       },
       plainly},
      {"with a user's timeout and a small window",
       [=](const UniqueFd& connection) {
         set(connection, IPPROTO_TCP, TCP_WINDOW_CLAMP, 4096);
         set(connection, IPPROTO_TCP, TCP_USER_TIMEOUT, 1000);
         receive_once(connection, 30'000);
         answer(connection);
       },
       [](const UniqueFd& client) {
         send_once(client, 30'000);
         receive_once(client, kSize);
       }},
      {"with time stamps asked for",
       [=](const UniqueFd& connection) {
         set(connection, SOL_SOCKET, SO_TIMESTAMPNS, 1);
         receive_once(connection, kSize);
         answer(connection);
       },
       plainly},
      {"busy polling",
       [=](const UniqueFd& connection) {
         set(connection, SOL_SOCKET, SO_BUSY_POLL, 50);
         receive_once(connection, kSize);
         answer(connection);
       },
       plainly},
  };
}

void check_server(const Life& life) {
  CAPTURE(life.name);
  const Watched where;
  Child server = server_that(where.directory(), [&life](const UniqueFd& connection, Line&) {
    for (int i = 0; i < kRounds; ++i) {
      life.serve(connection);
    }
  });
  const UniqueFd client = connect_to(server);
  for (int i = 0; i < kRounds; ++i) {
    life.ask(client);
  }
  (void)server.hear();
  close_connection(server);
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
  CHECK(where.value("tacho_requests_total") == kRounds * life.requests_a_round);
  CHECK(where.observations("tacho_request_duration_seconds") == kRounds * life.requests_a_round);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_unseen_replies_total") == 0);
  CHECK(where.value("tacho_oneway_messages_total") == 0);
  finish(server);
}

/// The same life, with the client watched.
void check_client(const Life& life) {
  CAPTURE(life.name);
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  Child client(where.directory(), [&life, port](Line& parent) {
    const UniqueFd connection = connect_tcp(port);
    for (int i = 0; i < kRounds; ++i) {
      life.ask(connection);
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd connection = accept_from(listener);
  for (int i = 0; i < kRounds; ++i) {
    life.serve(connection);
  }
  (void)client.hear();
  const std::string peer = "127.0.0.1:" + std::to_string(port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer}}) == kRounds * life.requests_a_round);
  CHECK(where.value("tacho_requests_total") == 0);
  client.tell();
  client.finish();
}

}  // namespace

TEST_CASE("whatever the options and flags of reads and sends, each exchange is one request") {
  for (const Life& life : lives()) {
    check_server(life);
  }
}

TEST_CASE("whatever the options and flags of reads and sends, each exchange is one call") {
  for (const Life& life : lives()) {
    check_client(life);
  }
}
