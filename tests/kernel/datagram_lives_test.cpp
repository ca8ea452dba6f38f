// Datagram sockets that do not stay with one peer, one side or one reply.

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 60;

}  // namespace

TEST_CASE("a datagram socket that is connected to one peer after another calls each of them") {
  const bool dissolves = GENERATE(false, true);
  CAPTURE(dissolves);
  const Watched where;
  const std::array<UniqueFd, 3> peers{bound_socket(0), bound_socket(0), bound_socket(0)};
  const std::array<std::uint16_t, 3> ports{port_of(peers[0]), port_of(peers[1]), port_of(peers[2])};
  Child client(where.directory(), [&](Line& parent) {
    const UniqueFd socket = datagram_socket();
    for (int i = 0; i < kRequests; ++i) {
      for (const std::uint16_t port : ports) {
        connect_to(socket, port);
        send_once(socket, kDatagramBytes);
        receive_once(socket, kDatagramBytes);
        if (dissolves) {
          const sockaddr none{.sa_family = AF_UNSPEC, .sa_data = {}};
          must(::connect(socket.get(), &none, sizeof(none)) == 0, "connect to nobody");
        }
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kRequests; ++i) {
    for (const UniqueFd& peer : peers) {
      send_back(peer);
    }
  }
  (void)client.hear();
  for (const UniqueFd& peer : peers) {
    CHECK(calls_to(where, peer) == kRequests);
  }
  CHECK(where.value("tacho_requests_total") == 0);
  client.tell();
  client.finish();
}

TEST_CASE("UDP-Lite is counted like UDP") {
  const Watched where;
  const auto bound = [] {
    UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDPLITE));
    const auto any = loopback(0);
    must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0, "bind");
    return socket;
  };
  const UniqueFd upstream = bound();
  const std::uint16_t upstream_port = port_of(upstream);
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd socket = bound();
    const UniqueFd client = bound();
    parent.tell(port_of(socket));
    for (int i = 0; i < kRequests; ++i) {
      const sockaddr_in from = wait_for_one(socket);
      send_to(client, upstream_port);
      (void)wait_for_one(client);
      send_to(socket, ntohs(from.sin_port));
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  const UniqueFd client = bound();
  for (int i = 0; i < kRequests; ++i) {
    send_to(client, port);
    answer_one(upstream);
    (void)wait_for_one(client);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(calls_to(where, upstream) == kRequests);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
}

namespace {

/// A client on one socket is answered each time from a new port, and sends something there, too.
void live_with_answers_from_elsewhere(const Watched& where, std::uint16_t own, const UniqueFd& called) {
  Child client(where.directory(), [own, port = port_of(called)](Line& parent) {
    const UniqueFd socket = bound_socket(own);
    for (int i = 0; i < kRequests; ++i) {
      send_to(socket, port);
      const sockaddr_in from = wait_for_one(socket);
      send_to(socket, ntohs(from.sin_port));
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kRequests; ++i) {
    const sockaddr_in from = wait_for_one(called);
    const UniqueFd answering = bound_socket(0);
    send_to(answering, ntohs(from.sin_port));
    (void)wait_for_one(answering);
  }
  (void)client.hear();
  client.tell();
  client.finish();
}

}  // namespace

TEST_CASE("what comes from another port of the host that was called is an answer, if the port called gives none") {
  const Watched where;
  const UniqueFd called = bound_socket(0);
  live_with_answers_from_elsewhere(where, 0, called);
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(calls_to(where, called) == kRequests);
}

TEST_CASE("on a port that its program chose a socket is asked by whoever was not called") {
  const Watched where;
  const UniqueFd called = bound_socket(0);
  live_with_answers_from_elsewhere(where, 20301, called);
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(calls_to(where, called) == 0);
}

namespace {

/// Switched on before it is bound: who hears what goes to everybody shares the port with who answers.
UniqueFd socket_at(in_addr_t address, std::uint16_t port) {
  constexpr int kOn = 1;
  UniqueFd socket = datagram_socket();
  must(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &kOn, sizeof(kOn)) == 0, "SO_REUSEADDR");
  sockaddr_in own = loopback(port);
  own.sin_addr.s_addr = htonl(address);
  must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)) == 0, "bind");
  return socket;
}

/// Calls everybody of the loopback network.
void call_all(const UniqueFd& socket, std::uint16_t port) {
  constexpr int kOn = 1;
  must(::setsockopt(socket.get(), SOL_SOCKET, SO_BROADCAST, &kOn, sizeof(kOn)) == 0, "SO_BROADCAST");
  sockaddr_in all = loopback(port);
  all.sin_addr.s_addr = htonl(INADDR_LOOPBACK | IN_CLASSA_HOST);
  must(::sendto(socket.get(), "all", 3, 0, reinterpret_cast<const sockaddr*>(&all), sizeof(all)) == 3, "sendto");
}

}  // namespace

TEST_CASE("what comes from other hosts by the port that was called are answers, if the one called gives none") {
  const auto own = static_cast<std::uint16_t>(GENERATE(0, 20301));
  const int answers = GENERATE(1, 3);
  CAPTURE(own, answers);
  const Watched where;
  const UniqueFd called = socket_at(INADDR_ANY, 0);
  const std::uint16_t port = port_of(called);
  std::vector<UniqueFd> hosts;
  for (int i = 0; i < answers; ++i) {
    hosts.push_back(socket_at(INADDR_LOOPBACK + 1 + static_cast<in_addr_t>(i), port));
  }
  Child client(where.directory(), [&](Line& parent) {
    const UniqueFd socket = bound_socket(own);
    for (int i = 0; i < kRequests; ++i) {
      call_all(socket, port);
      for (int answer = 0; answer < answers; ++answer) {
        (void)wait_for_one(socket);
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kRequests; ++i) {
    const sockaddr_in from = wait_for_one(called);
    for (const UniqueFd& host : hosts) {
      send_to(host, ntohs(from.sin_port));
    }
  }
  (void)client.hear();
  const std::string all = "127.255.255.255:" + std::to_string(port);
  const double calls = where.value("tacho_dependency_calls_total", {{"peer", all}});
  if (own) {
    // Some may be read before the hook of their arrival tells from whom they are.
    CHECK(2 * calls < kRequests);
    CHECK(where.value("tacho_requests_in_flight") + calls == kRequests * answers);
  } else {
    CHECK(calls == kRequests);
    CHECK(where.value("tacho_requests_in_flight") == 0);
  }
  CHECK(where.value("tacho_requests_total") == 0);
  client.tell();
  client.finish();
}

TEST_CASE("answers of other hosts that are read before their arrival is told leave their socket a caller") {
  // Who asks spins: some answers are read while the one who sent them has not come to the hook of their arrival.
  constexpr int kCalls = 3000;
  constexpr int kAnswers = 3;
  const Watched where;
  const UniqueFd called = socket_at(INADDR_ANY, 0);
  const std::uint16_t port = port_of(called);
  std::vector<UniqueFd> hosts;
  for (int i = 0; i < kAnswers; ++i) {
    hosts.push_back(socket_at(INADDR_LOOPBACK + 1 + static_cast<in_addr_t>(i), port));
  }
  Child client(where.directory(), [&](Line& parent) {
    const UniqueFd socket = bound_socket(0);
    for (int i = 0; i < kCalls; ++i) {
      call_all(socket, port);
      for (int answer = 0; answer < kAnswers; ++answer) {
        (void)spin_for(socket);
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kCalls; ++i) {
    const sockaddr_in from = wait_for_one(called);
    for (const UniqueFd& host : hosts) {
      send_to(host, ntohs(from.sin_port));
    }
  }
  (void)client.hear();
  const std::string all = "127.255.255.255:" + std::to_string(port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", all}}) == kCalls);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_requests_total") == 0);
  client.tell();
  client.finish();
}

TEST_CASE("a reply that goes to another address than its request came from answers nothing") {
  const Watched where;
  const UniqueFd asking = bound_socket(0);
  const UniqueFd hearing = bound_socket(0);
  const std::uint16_t elsewhere = port_of(hearing);
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd socket = bound_socket(20301);
    parent.tell(port_of(socket));
    for (int i = 0; i < kRequests; ++i) {
      (void)wait_for_one(socket);
      send_to(socket, elsewhere);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < kRequests; ++i) {
    send_to(asking, port);
    (void)wait_for_one(hearing);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_requests_in_flight") == kRequests);
  CHECK(calls_to(where, hearing) == 0);
  server.tell();
  server.finish();
}

TEST_CASE("TFTP: each block is acknowledged where it came from, and the next one is the answer") {
  constexpr int kBlocks = 8;
  const Watched where;
  const UniqueFd known = bound_socket(20301);
  Child client(where.directory(), [port = port_of(known)](Line& parent) {
    for (int i = 0; i < kRequests; ++i) {
      const UniqueFd socket = bound_socket(0);
      send_to(socket, port);
      for (int block = 0; block < kBlocks; ++block) {
        send_to(socket, ntohs(wait_for_one(socket).sin_port));
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kRequests; ++i) {
    const sockaddr_in from = wait_for_one(known);
    const UniqueFd transfer = bound_socket(20401);
    for (int block = 0; block < kBlocks; ++block) {
      send_to(transfer, ntohs(from.sin_port));
      (void)wait_for_one(transfer);
    }
  }
  (void)client.hear();
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(shared().page().sum("tacho_dependency_calls_total", {{"cgroup", where.path()}}) == kRequests * kBlocks);
  client.tell();
  client.finish();
}

TEST_CASE("who asks a socket that waits for an upstream's answer is no such answer, though of the same host") {
  const auto first = static_cast<std::uint16_t>(GENERATE(0, 20301));
  CAPTURE(first);
  constexpr int kAlone = 5;  // one of them may be read before the hook of its arrival tells from whom it is
  const Watched where;
  const UniqueFd upstream = bound_socket(0);
  Child server(where.directory(), [first, upstream_port = port_of(upstream)](Line& parent) {
    const UniqueFd socket = bound_socket(first);
    parent.tell(port_of(socket));
    for (int i = 0; i < kAlone; ++i) {
      send_to(socket, upstream_port);
      (void)wait_for_one(socket);
    }
    for (int i = 0; i < kRequests; ++i) {
      // The upstream answers when the client is served.
      send_to(socket, upstream_port);
      const sockaddr_in client = wait_for_one(socket);
      send_to(socket, ntohs(client.sin_port));
      (void)wait_for_one(socket);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  send_back(upstream, kAlone);
  for (int i = 0; i < kRequests; ++i) {
    const sockaddr_in asked = wait_for_one(upstream);
    const UniqueFd client = bound_socket(0);
    send_to(client, port);
    (void)wait_for_one(client);
    send_to(upstream, ntohs(asked.sin_port));
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(calls_to(where, upstream) == kRequests + kAlone);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
}

TEST_CASE("who asks a server that has called everybody is no answer") {
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    const UniqueFd socket = bound_socket(20301);
    const in_addr local{htonl(INADDR_LOOPBACK)};
    must(::setsockopt(socket.get(), IPPROTO_IP, IP_MULTICAST_IF, &local, sizeof(local)) == 0, "IP_MULTICAST_IF");
    sockaddr_in all = loopback(20302);
    all.sin_addr.s_addr = htonl(0xef010203U);
    parent.tell(port_of(socket));
    for (int i = 0; i < kRequests; ++i) {
      answer_one(socket);
      must(::sendto(socket.get(), "news", 4, 0, reinterpret_cast<const sockaddr*>(&all), sizeof(all)) == 4, "sendto");
      parent.tell();
    }
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  for (int i = 0; i < kRequests; ++i) {
    const UniqueFd client = bound_socket(0);
    send_to(client, port);
    (void)wait_for_one(client);
    (void)server.hear();
  }
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(shared().page().sum("tacho_dependency_calls_total", {{"cgroup", where.path()}}) == 0);
  server.tell();
  server.finish();
}
