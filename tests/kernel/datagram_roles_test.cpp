// Which datagram sockets serve and which ask, whatever comes first.

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;
constexpr std::size_t kBytes = kDatagramBytes;

}  // namespace

TEST_CASE("a datagram socket that asks is no server because something came before it asked") {
  constexpr std::uint16_t kFixed = 20011;
  for (const bool connected : {false, true}) {
    CAPTURE(connected);
    const Watched where;
    const UniqueFd peer = bound_socket(0);
    const std::uint16_t peer_port = port_of(peer);
    Child client(where.directory(), [&](Line& parent) {
      const UniqueFd socket = bound_socket(kFixed);
      if (connected) {
        connect_to(socket, peer_port);
      }
      parent.tell(port_of(socket));
      (void)parent.hear();  // something has come
      for (int i = 0; i < kRequests; ++i) {
        send_to(socket, peer_port);
        receive_once(socket, kBytes);
      }
      parent.tell();
      (void)parent.hear();
    });
    const auto client_port = static_cast<std::uint16_t>(client.hear());
    send_to(peer, client_port);
    client.tell();
    for (int i = 0; i < kRequests; ++i) {
      receive_once(peer, kBytes);
      send_to(peer, client_port);
    }
    (void)client.hear();
    CHECK(where.value("tacho_requests_total") == 0);
    const std::string name = "127.0.0.1:" + std::to_string(peer_port);
    CHECK(where.value("tacho_dependency_calls_total", {{"peer", name}}) == kRequests);
    client.tell();
    client.finish();
  }
}

TEST_CASE("a datagram server that answers what it has only looked at serves, whoever asks next") {
  // Then no hook has told of what it looks at.
  const bool moves_after_arrival = GENERATE(false, true);
  CAPTURE(moves_after_arrival);
  const Watched where;
  Child server(moves_after_arrival ? "" : where.directory(), [](Line& parent) {
    const UniqueFd socket = bound_socket(0);
    parent.tell(port_of(socket));
    const auto client_port = static_cast<std::uint16_t>(parent.hear());
    std::array<char, kBytes> looked_at{};
    must(::recv(socket.get(), looked_at.data(), looked_at.size(), MSG_PEEK) == kBytes, "peek");
    send_to(socket, client_port);  // a cookie
    receive_once(socket, kBytes);
    for (int i = 0; i < kRequests; ++i) {
      receive_once(socket, kBytes);
      send_to(socket, client_port);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto server_port = static_cast<std::uint16_t>(server.hear());
  const UniqueFd client = bound_socket(0);
  if (moves_after_arrival) {
    send_to(client, server_port);
    move_to(where.directory(), server.pid());
  }
  server.tell(port_of(client));
  if (!moves_after_arrival) {
    send_to(client, server_port);
  }
  receive_once(client, kBytes);
  for (int i = 0; i < kRequests; ++i) {
    send_to(client, server_port);
    receive_once(client, kBytes);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_dependency_calls_total") == 0);
  server.tell();
  server.finish();
}

TEST_CASE("a datagram client that looks at its answers before it reads them calls, whoever answers") {
  const Watched where;
  const UniqueFd listener = bound_socket(0);
  const UniqueFd another = bound_socket(0);
  Child client(where.directory(), [to = port_of(listener), then_to = port_of(another)](Line& parent) {
    const UniqueFd socket = bound_socket(0);
    parent.tell(port_of(socket));
    for (int i = 0; i < kRequests; ++i) {
      send_to(socket, i == 0 ? to : then_to);
      std::array<char, kBytes> looked_at{};
      must(::recv(socket.get(), looked_at.data(), looked_at.size(), MSG_PEEK) == kBytes, "peek");
      receive_once(socket, kBytes);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto client_port = static_cast<std::uint16_t>(client.hear());
  for (int i = 0; i < kRequests; ++i) {
    receive_once(i == 0 ? listener : another, kBytes);
    send_to(another, client_port);
  }
  (void)client.hear();
  CHECK(where.value("tacho_requests_total") == 0);
  const auto calls = [&where](const UniqueFd& of) {
    return where.value("tacho_dependency_calls_total", {{"peer", peer_at(port_of(of))}});
  };
  CHECK(calls(listener) + calls(another) == kRequests);
  client.tell();
  client.finish();
}

TEST_CASE("a target with ports counts no datagram server on others") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  config.targets.front().ports = {1};
  Running tacho(config);
  for (const std::uint16_t port : {std::uint16_t{20011}, std::uint16_t{0}}) {
    CAPTURE(port);
    Child server(cgroup.directory(), [port](Line& parent) {
      const UniqueFd socket = bound_socket(port);
      const auto client_port = static_cast<std::uint16_t>(parent.hear());
      parent.tell(port_of(socket));
      for (int i = 0; i < kRequests; ++i) {
        receive_once(socket, kBytes);
        send_to(socket, client_port);
      }
      parent.tell();
      (void)parent.hear();
    });
    const UniqueFd client = bound_socket(0);
    server.tell(port_of(client));
    const auto server_port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kRequests; ++i) {
      send_to(client, server_port);
      receive_once(client, kBytes);
    }
    (void)server.hear();
    CHECK(tacho.page().value("tacho_requests_total", {{"target", "t"}}) == 0);
    server.tell();
    server.finish();
  }
}

namespace {

sockaddr_in receive_from(const UniqueFd& socket) {
  std::array<char, 64> data{};
  sockaddr_in from{};
  socklen_t length = sizeof(from);
  must(::recvfrom(socket.get(), data.data(), data.size(), 0, reinterpret_cast<sockaddr*>(&from), &length) > 0,
       "recvfrom");
  return from;
}

void answer(const UniqueFd& socket) {
  const sockaddr_in from = receive_from(socket);
  send_to(socket, ntohs(from.sin_port));
}

/// Of IPv6 alone if it is an IPv6 address. @param action bind(2) or connect(2)
UniqueFd socket_by(int (*action)(int, const sockaddr*, socklen_t), const char* address, std::uint16_t port) {
  addrinfo wanted{};
  wanted.ai_flags = AI_NUMERICHOST;
  wanted.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  must(::getaddrinfo(address, std::to_string(port).c_str(), &wanted, &found) == 0, "getaddrinfo");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  UniqueFd socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  must(found->ai_family == AF_INET || ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0,
       "IPV6_V6ONLY");
  must(action(socket.get(), found->ai_addr, found->ai_addrlen) == 0, address);
  return socket;
}

/// Whatever its family.
void answer_whoever(const UniqueFd& socket) {
  std::array<char, kBytes> data{};
  sockaddr_storage from{};
  socklen_t length = sizeof(from);
  auto* const address = reinterpret_cast<sockaddr*>(&from);
  must(::recvfrom(socket.get(), data.data(), data.size(), 0, address, &length) == kBytes, "recvfrom");
  must(::sendto(socket.get(), data.data(), data.size(), 0, address, length) == kBytes, "sendto");
}

/// A child with one datagram socket. A word is what it does next, times 65536, plus a port.
enum class Order : std::uint64_t { end, poll, serve, forward };

class OneSocket {
 public:
  explicit OneSocket(const std::string& cgroup)
      : child_(cgroup, [](Line& parent) {
          const UniqueFd socket = bound_socket(20011);
          parent.tell(port_of(socket));
          while (const auto order = parent.hear()) {
            const auto port = static_cast<std::uint16_t>(order);
            switch (static_cast<Order>(order >> 16)) {
              case Order::poll:
                send_to(socket, port);
                receive_once(socket, kBytes);
                break;
              case Order::serve:
                answer(socket);
                break;
              default: {
                const sockaddr_in from = receive_from(socket);
                send_to(socket, port);
                receive_once(socket, kBytes);
                send_to(socket, ntohs(from.sin_port));
              }
            }
            parent.tell();
          }
        }) {
    port_ = static_cast<std::uint16_t>(child_.hear());
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  void begin(Order order, std::uint16_t port = 0) { child_.tell(static_cast<std::uint64_t>(order) << 16 | port); }
  void done() { (void)child_.hear(); }
  void finish() {
    child_.tell(0);
    child_.finish();
  }

 private:
  Child child_;
  std::uint16_t port_ = 0;
};

}  // namespace

TEST_CASE("a datagram socket serves those who asked it and calls those whom it asked, at once") {
  const bool polls_first = GENERATE(true, false);
  CAPTURE(polls_first);
  constexpr int kServed = 503;
  constexpr int kPolls = 17;
  const Watched where;
  OneSocket daemon(where.directory());
  const UniqueFd upstream = bound_socket(0);
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(bound_socket(0));
  }
  const auto serve = [&](int number) {
    const UniqueFd& client = clients[static_cast<std::size_t>(number) % clients.size()];
    daemon.begin(Order::serve);
    send_to(client, daemon.port());
    receive_once(client, kBytes);
    daemon.done();
  };
  const auto poll = [&] {
    daemon.begin(Order::poll, port_of(upstream));
    answer(upstream);
    daemon.done();
  };
  int served = 0;
  for (int i = 0; i < kPolls; ++i) {
    for (const int upto = kServed * (i + (polls_first ? 0 : 1)) / kPolls; served < upto; ++served) {
      serve(served);
    }
    poll();
  }
  for (; served < kServed; ++served) {
    serve(served);
  }
  CHECK(where.value("tacho_requests_total") == kServed);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer_at(port_of(upstream))}}) == kPolls);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  daemon.finish();
}

TEST_CASE("a resolver that asks others on the socket that it is asked on") {
  const Watched where;
  OneSocket resolver(where.directory());
  const UniqueFd upstream = bound_socket(0);
  for (int i = 0; i < kRequests; ++i) {
    const UniqueFd client = bound_socket(0);
    resolver.begin(Order::forward, port_of(upstream));
    send_to(client, resolver.port());
    answer(upstream);
    receive_once(client, kBytes);
    resolver.done();
  }
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer_at(port_of(upstream))}}) == kRequests);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  resolver.finish();
}

TEST_CASE("sockets that a server connects to its clients serve, whoever has read the first datagram") {
  const bool read_by_listener = GENERATE(false, true);
  CAPTURE(read_by_listener);
  const Watched where;
  Child server(where.directory(), [read_by_listener](Line& parent) {
    const int on = 1;
    const UniqueFd listener = datagram_socket();
    must(::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0, "SO_REUSEADDR");
    const auto any = loopback(0);
    must(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0, "bind");
    parent.tell(port_of(listener));
    for (int i = 0; i < 3; ++i) {
      // A cookie exchange (DTLS), then a socket of the client's own.
      answer(listener);
      sockaddr_in client{};
      if (read_by_listener) {
        client = receive_from(listener);
      } else {
        client = loopback(static_cast<std::uint16_t>(parent.hear()));
      }
      const UniqueFd own = datagram_socket();
      must(::setsockopt(own.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0, "SO_REUSEADDR");
      const auto self = loopback(port_of(listener));
      must(::bind(own.get(), reinterpret_cast<const sockaddr*>(&self), sizeof(self)) == 0, "bind");
      connect_to(own, ntohs(client.sin_port));
      if (read_by_listener) {
        send_once(own, kBytes);
      }
      parent.tell();
      serve(own, kRequests, kBytes, kBytes);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < 3; ++i) {
    const UniqueFd client = bound_socket(0);
    send_to(client, port);
    receive_once(client, kBytes);
    if (read_by_listener) {
      send_to(client, port);
      receive_once(client, kBytes);
    } else {
      server.tell(port_of(client));
    }
    (void)server.hear();
    for (int j = 0; j < kRequests; ++j) {
      send_to(client, port);
      receive_once(client, kBytes);
    }
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 3 * (kRequests + 1));
  CHECK(shared().page().count("tacho_dependency_calls_total", {{"cgroup", where.path()}}) == 0);
  server.tell();
  server.finish();
}

TEST_CASE("a client whose port is that of a server at another address calls") {
  // Where the server is bound, and whether the kernel would give its port to clients of 127.0.0.1, too.
  const char* const server_at = GENERATE("127.0.0.2", "::1", "::");
  CAPTURE(server_at);
  const Watched where;
  const UniqueFd upstream = bound_socket(0);
  Child both(where.directory(), [server_at, peer = port_of(upstream)](Line& parent) {
    const UniqueFd server = socket_by(::bind, server_at, 0);
    const std::uint16_t port = port_of(server);
    parent.tell(port);
    // Now it is known to serve.
    answer_whoever(server);
    const UniqueFd client = socket_by(::bind, "127.0.0.1", port);
    connect_to(client, peer);
    for (int i = 0; i < kRequests; ++i) {
      send_once(client, kBytes);
      receive_once(client, kBytes);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(both.hear());
  const UniqueFd asker = socket_by(::connect, server_at, port);
  send_once(asker, kBytes);
  receive_once(asker, kBytes);
  for (int i = 0; i < kRequests; ++i) {
    answer(upstream);
  }
  (void)both.hear();
  CHECK(where.value("tacho_requests_total") == 1);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer_at(port_of(upstream))}}) == kRequests);
  both.tell();
  both.finish();
}

TEST_CASE("a server that receives and sends many datagrams a call serves and calls each peer") {
  constexpr int kBatch = 30;
  const Watched where;
  const UniqueFd upstream = bound_socket(0);
  Child server(where.directory(), [peer = port_of(upstream)](Line& parent) {
    const UniqueFd socket = bound_socket(20011);
    parent.tell(port_of(socket));
    (void)parent.hear();
    Batch batch(kBatch + 1);
    for (int round = 0; round < 3; ++round) {
      must(batch.receive(socket) == kBatch, "a batch");
      batch.peer(kBatch) = loopback(peer);
      batch.send(socket, kBatch + 1);
      receive_once(socket, kBytes);
      parent.tell();
      (void)parent.hear();
    }
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  std::vector<UniqueFd> clients;
  for (int i = 0; i < kBatch / 2; ++i) {
    clients.push_back(bound_socket(0));
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kBatch; ++i) {
      send_to(clients[static_cast<std::size_t>(i / 2)], port);
    }
    server.tell();
    answer(upstream);
    for (int i = 0; i < kBatch; ++i) {
      receive_once(clients[static_cast<std::size_t>(i / 2)], kBytes);
    }
    (void)server.hear();
  }
  CHECK(where.value("tacho_requests_total") == 3 * kBatch);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer_at(port_of(upstream))}}) == 3);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
}

TEST_CASE("questions of a client that asks two at a time are two calls") {
  const bool connected = GENERATE(true, false);
  CAPTURE(connected);
  constexpr int kPairs = 5000;
  const Watched where;
  const UniqueFd upstream = bound_socket(0);
  Child resolver(where.directory(), [connected, port = port_of(upstream)](Line& parent) {
    for (int i = 0; i < kPairs; ++i) {
      const UniqueFd socket = datagram_socket();
      if (connected) {
        connect_to(socket, port);
      }
      send_to(socket, port);
      send_to(socket, port);
      receive_once(socket, kBytes);
      receive_once(socket, kBytes);
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kPairs; ++i) {
    const sockaddr_in from = receive_from(upstream);
    answer(upstream);
    send_to(upstream, ntohs(from.sin_port));
  }
  (void)resolver.hear();
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer_at(port_of(upstream))}}) == 2 * kPairs);
  CHECK(shared().wait_for(
      [&] { return where.value("tacho_target_condition", {{"condition", "multiplexed_calls"}}) == 1; }));
  CHECK(where.value("tacho_requests_total") == 0);
  resolver.tell();
  resolver.finish();
}

TEST_CASE("a port that a server has given back makes no server of the client that gets it") {
  constexpr std::uint16_t kPort = 20051;
  const Watched where;
  const UniqueFd upstream = bound_socket(0);
  Child program(where.directory(), [port = port_of(upstream)](Line& parent) {
    UniqueFd server = bound_socket(kPort);
    const std::uint16_t served = port_of(server);
    parent.tell(served);
    const sockaddr_in from = receive_from(server);
    send_to(server, ntohs(from.sin_port));
    server = UniqueFd();
    const UniqueFd client = bound_socket(served);
    connect_to(client, port);
    for (int i = 0; i < kRequests; ++i) {
      send_to(client, port);
      receive_once(client, kBytes);
    }
    parent.tell(port_of(client));
    (void)parent.hear();
  });
  const auto served = static_cast<std::uint16_t>(program.hear());
  const UniqueFd asking = bound_socket(0);
  send_to(asking, served);
  receive_once(asking, kBytes);
  for (int i = 0; i < kRequests; ++i) {
    answer(upstream);
  }
  REQUIRE(program.hear() == served);
  CHECK(where.value("tacho_requests_total") == 1);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer_at(port_of(upstream))}}) == kRequests);
  program.tell();
  program.finish();
}
