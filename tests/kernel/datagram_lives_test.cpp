// Datagram sockets that do not stay with one peer, one side or one reply.

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
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

constexpr int kRequests = 60;
constexpr std::chrono::milliseconds kBetweenExchanges{150};

std::string peer_at(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

/// Sleeps until something comes, as event loops do. @return from where
sockaddr_in wait_for_one(const UniqueFd& socket) {
  pollfd wanted{.fd = socket.get(), .events = POLLIN, .revents = 0};
  must(::poll(&wanted, 1, 10'000) == 1, "nothing came within 10 s");
  return spin_for(socket);
}

void answer_one(const UniqueFd& socket) {
  send_to(socket, ntohs(wait_for_one(socket).sin_port));
}

double calls_to(const Watched& where, const UniqueFd& peer) {
  return where.value("tacho_dependency_calls_total", {{"peer", peer_at(port_of(peer))}});
}

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

/// One of two nodes that ask each other, each on its one socket. A word is whether it asks (1) or answers (2) next.
void ask_and_answer(const UniqueFd& socket, std::uint16_t other, std::uint64_t order) {
  if (order == 1) {
    send_to(socket, other);
    (void)wait_for_one(socket);
  } else {
    answer_one(socket);
  }
}

}  // namespace

TEST_CASE("nodes that ask each other on one pair of ports are told apart after some exchanges") {
  const bool begins = GENERATE(true, false);
  const int in_a_row = GENERATE(1, 3);
  CAPTURE(begins, in_a_row);
  const Watched where;
  const UniqueFd peer = bound_socket(20301);
  Child node(where.directory(), [port = port_of(peer)](Line& parent) {
    const UniqueFd socket = bound_socket(20311);
    parent.tell(port_of(socket));
    while (const auto order = parent.hear()) {
      ask_and_answer(socket, port, order);
      parent.tell();
    }
  });
  const auto port = static_cast<std::uint16_t>(node.hear());
  const auto exchange = [&](int count) {
    for (int i = 0; i < 2 * count; ++i) {
      const bool asks = (i / in_a_row % 2 == 0) == begins;
      node.tell(asks ? 1 : 2);
      ask_and_answer(peer, port, asks ? 2 : 1);
      (void)node.hear();
    }
  };
  exchange(1);
  // One of each: who spoke first counts as the client.
  CHECK((begins ? where.value("tacho_requests_total") : calls_to(where, peer)) == 0);
  // A read that overtakes the hook of its arrival leaves in doubt who began: that is known again after a silence.
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(kBetweenExchanges);
    exchange(10 * in_a_row);
  }
  const double requests = where.value("tacho_requests_total");
  const double calls = calls_to(where, peer);
  exchange(kRequests);
  CHECK(where.value("tacho_requests_total") - requests == kRequests);
  CHECK(calls_to(where, peer) - calls == kRequests);
  node.tell(0);
  node.finish();
}

TEST_CASE("nodes that ask each other at the same time are counted as often as they asked") {
  const Watched where;
  const UniqueFd peer = bound_socket(20301);
  const auto both_ask = [](const UniqueFd& socket, std::uint16_t other) {
    send_to(socket, other);
    (void)wait_for_one(socket);
    send_to(socket, other);
    (void)wait_for_one(socket);
  };
  Child node(where.directory(), [&, port = port_of(peer)](Line& parent) {
    const UniqueFd socket = bound_socket(20311);
    parent.tell(port_of(socket));
    for (int i = 0; i < kRequests; ++i) {
      both_ask(socket, port);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(node.hear());
  for (int i = 0; i < kRequests; ++i) {
    both_ask(peer, port);
  }
  (void)node.hear();
  CHECK(where.value("tacho_requests_total") + calls_to(where, peer) == 2 * kRequests);
  node.tell();
  node.finish();
}

TEST_CASE("answers in pieces, and questions that are asked again, make no server of who asks") {
  const bool asks = GENERATE(true, false);
  CAPTURE(asks);
  constexpr int kExchanges = 500;
  const Watched where;
  const UniqueFd peer = bound_socket(20301);
  const auto questions = [](int i) { return i % 11 == 3 ? 2 : 1; };
  const auto answers = [](int i) { return i % 7 == 2 ? 2 : 1; };
  const auto ask_all = [&](const UniqueFd& socket, std::uint16_t port) {
    for (int i = 0; i < kExchanges; ++i) {
      for (int sent = 0; sent < questions(i); ++sent) {
        send_to(socket, port);
      }
      for (int come = 0; come < answers(i); ++come) {
        (void)wait_for_one(socket);
      }
    }
  };
  const auto answer_all = [&](const UniqueFd& socket) {
    for (int i = 0; i < kExchanges; ++i) {
      sockaddr_in from{};
      for (int come = 0; come < questions(i); ++come) {
        from = wait_for_one(socket);
      }
      for (int sent = 0; sent < answers(i); ++sent) {
        send_to(socket, ntohs(from.sin_port));
      }
    }
  };
  Child child(where.directory(), [&, port = port_of(peer)](Line& parent) {
    const UniqueFd socket = bound_socket(20311);
    parent.tell(port_of(socket));
    if (asks) {
      ask_all(socket, port);
    } else {
      answer_all(socket);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(child.hear());
  if (asks) {
    answer_all(peer);
  } else {
    ask_all(peer, port);
  }
  (void)child.hear();
  if (asks) {
    CHECK(where.value("tacho_requests_total") == 0);
    CHECK(where.value("tacho_requests_in_flight") == 0);
    CHECK(calls_to(where, peer) >= kExchanges);
  } else {
    CHECK(where.value("tacho_requests_total") >= kExchanges);
    CHECK(shared().page().sum("tacho_dependency_calls_total", {{"cgroup", where.path()}}) == 0);
  }
  child.tell();
  child.finish();
}

TEST_CASE("an answer from another port or address than the one that was called is an answer") {
  const bool elsewhere_once = GENERATE(true, false);
  CAPTURE(elsewhere_once);
  constexpr int kBlocks = 8;
  const Watched where;
  const UniqueFd known = bound_socket(20301);
  const std::uint16_t known_port = port_of(known);
  Child client(where.directory(), [&](Line& parent) {
    for (int i = 0; i < kRequests; ++i) {
      const UniqueFd socket = bound_socket(0);
      if (elsewhere_once) {
        send_to(socket, known_port);
        (void)wait_for_one(socket);
        continue;
      }
      // TFTP: each block is acknowledged where it came from, the last one, too.
      send_to(socket, known_port);
      for (int block = 0; block < kBlocks; ++block) {
        send_to(socket, ntohs(wait_for_one(socket).sin_port));
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kRequests; ++i) {
    const sockaddr_in from = wait_for_one(known);
    const UniqueFd another = bound_socket(20401);
    for (int block = 0; block < (elsewhere_once ? 1 : kBlocks); ++block) {
      send_to(another, ntohs(from.sin_port));
      if (!elsewhere_once) {
        (void)wait_for_one(another);
      }
    }
  }
  (void)client.hear();
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  const int all = kRequests * (elsewhere_once ? 1 : kBlocks);
  CHECK(shared().page().sum("tacho_dependency_calls_total", {{"cgroup", where.path()}}) == all);
  // Where an answer is read before the hook of its arrival has run, what goes there next is a call to there.
  CHECK(calls_to(where, known) >= 0.9 * all);
  client.tell();
  client.finish();
}

TEST_CASE("several replies to one datagram raise a condition") {
  // SIP: 100, 180, 200 to an INVITE, and the client's ACK.
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    const UniqueFd socket = bound_socket(20321);
    parent.tell(port_of(socket));
    for (int i = 0; i < kRequests; ++i) {
      const sockaddr_in from = wait_for_one(socket);
      for (int reply = 0; reply < 3; ++reply) {
        send_to(socket, ntohs(from.sin_port));
      }
      (void)wait_for_one(socket);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  const UniqueFd client = bound_socket(0);
  for (int i = 0; i < kRequests; ++i) {
    send_to(client, port);
    for (int reply = 0; reply < 3; ++reply) {
      (void)wait_for_one(client);
    }
    send_to(client, port);
  }
  (void)server.hear();
  CHECK(shared().wait_for([&] { return where.value("tacho_target_condition", {{"condition", "multiplexed"}}) == 1; }));
  server.tell();
  server.finish();
}
