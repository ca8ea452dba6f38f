// Nodes that ask each other on one pair of ports.

#include <netinet/in.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 60;

std::string peer_at(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

double calls_to(const Watched& where, const UniqueFd& peer) {
  return where.value("tacho_dependency_calls_total", {{"peer", peer_at(port_of(peer))}});
}

constexpr std::chrono::milliseconds kSilence{150};
constexpr std::chrono::milliseconds kLongSilence{1'100};

/// What one of two nodes does next on its one socket; the other one does what belongs to that.
enum Turn : std::uint64_t { ends, asks, answers, asks_in_vain, is_asked_in_vain };

Turn of_other(Turn turn) {
  switch (turn) {
    case asks:
      return answers;
    case answers:
      return asks;
    case asks_in_vain:
      return is_asked_in_vain;
    case is_asked_in_vain:
      return asks_in_vain;
    default:
      return turn;
  }
}

void take_turn(const UniqueFd& socket, std::uint16_t other, Turn turn) {
  if (turn == asks || turn == asks_in_vain) {
    send_to(socket, other);
  }
  if (turn == asks || turn == is_asked_in_vain) {
    (void)wait_for_one(socket);
  }
  if (turn == answers) {
    answer_one(socket);
  }
}

/// Two nodes, both on ports that they chose; of one, requests and calls are counted.
class Nodes {
 public:
  void take(Turn turn, int times = 1) {
    for (int i = 0; i < times; ++i) {
      node_.tell(turn);
      take_turn(peer_, port_, of_other(turn));
      (void)node_.hear();
    }
  }
  [[nodiscard]] double requests() const { return where_.value("tacho_requests_total"); }
  [[nodiscard]] double in_flight() const { return where_.value("tacho_requests_in_flight"); }
  [[nodiscard]] double calls() const { return calls_to(where_, peer_); }
  void finish() {
    node_.tell(ends);
    node_.finish();
  }

 private:
  Watched where_;
  UniqueFd peer_ = bound_socket(20301);
  Child node_{where_.directory(), [other = port_of(peer_)](Line& parent) {
                const UniqueFd socket = bound_socket(20311);
                parent.tell(port_of(socket));
                while (const auto turn = static_cast<Turn>(parent.hear())) {
                  take_turn(socket, other, turn);
                  parent.tell();
                }
              }};
  std::uint16_t port_ = static_cast<std::uint16_t>(node_.hear());
};

}  // namespace

TEST_CASE("nodes that ask each other on one pair of ports are told apart by who speaks after a silence") {
  const bool begins = GENERATE(true, false);
  const int in_a_row = GENERATE(1, 20);
  CAPTURE(begins, in_a_row);
  constexpr int kBursts = 6;
  Nodes nodes;
  for (int burst = 0; burst < kBursts; ++burst) {
    std::this_thread::sleep_for(kSilence);
    nodes.take((burst % 2 == 0) == begins ? asks : answers, in_a_row);
  }
  CHECK(nodes.requests() == kBursts / 2 * in_a_row);
  CHECK(nodes.calls() == kBursts / 2 * in_a_row);
  CHECK(nodes.in_flight() == 0);
  nodes.finish();
}

TEST_CASE("nodes that ask each other without any silence are the client and the server that they were after the last") {
  const bool begins = GENERATE(true, false);
  CAPTURE(begins);
  Nodes nodes;
  for (int i = 0; i < kRequests; ++i) {
    nodes.take(begins ? asks : answers);
    nodes.take(begins ? answers : asks);
  }
  // The last answer to the one who is called, or of the one who calls, is taken for a question that nobody answers.
  CHECK(nodes.requests() == (begins ? 0 : 2 * kRequests - 1));
  CHECK(nodes.calls() == (begins ? 2 * kRequests - 1 : 0));
  nodes.finish();
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
  Child node(where.directory(), [&, other = port_of(peer)](Line& parent) {
    const UniqueFd socket = bound_socket(20311);
    parent.tell(port_of(socket));
    for (int i = 0; i < kRequests; ++i) {
      both_ask(socket, other);
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

TEST_CASE("of nodes that ask each other a question that is lost misleads until a silence of a second") {
  const bool loses_call = GENERATE(true, false);
  CAPTURE(loses_call);
  Nodes nodes;
  for (const Turn turn : {asks, answers, loses_call ? asks_in_vain : is_asked_in_vain}) {
    std::this_thread::sleep_for(kSilence);
    nodes.take(turn);
  }
  std::this_thread::sleep_for(kLongSilence);
  nodes.take(loses_call ? answers : asks);
  CHECK(nodes.requests() == (loses_call ? 2 : 1));
  CHECK(nodes.calls() == (loses_call ? 1 : 2));
  nodes.finish();
}

TEST_CASE("who is slow to answer stays a server, and who waits for it a client") {
  const bool serves = GENERATE(true, false);
  CAPTURE(serves);
  constexpr int kSlow = 8;
  const Watched where;
  const UniqueFd peer = bound_socket(20301);
  const auto ask = [](const UniqueFd& socket, std::uint16_t port) {
    for (int i = 0; i < kSlow; ++i) {
      send_to(socket, port);
      (void)wait_for_one(socket);
    }
  };
  const auto serve = [](const UniqueFd& socket) {
    for (int i = 0; i < kSlow; ++i) {
      const sockaddr_in from = wait_for_one(socket);
      std::this_thread::sleep_for(kSilence);
      send_to(socket, ntohs(from.sin_port));
    }
  };
  Child node(where.directory(), [&, other = port_of(peer)](Line& parent) {
    const UniqueFd socket = bound_socket(20311);
    parent.tell(port_of(socket));
    if (serves) {
      serve(socket);
    } else {
      ask(socket, other);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(node.hear());
  if (serves) {
    ask(peer, port);
  } else {
    serve(peer);
  }
  (void)node.hear();
  CHECK(where.value("tacho_requests_total") == (serves ? kSlow : 0));
  CHECK(calls_to(where, peer) == (serves ? 0 : kSlow));
  node.tell();
  node.finish();
}
