// Nodes that ask each other on one pair of ports.

#include <netinet/in.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 60;

constexpr std::chrono::milliseconds kSilence{150};
constexpr std::chrono::milliseconds kLongSilence{600};

/// Two nodes, both on ports that they chose; of one, requests and calls are counted. It receives when the other one has
/// sent, so that no read overtakes the hook of an arrival.
class Nodes {
 public:
  /// @param connects whether the one that is counted is connected to the other
  explicit Nodes(bool connects = false) : connects_(connects) {}

  void ask() {
    ask_in_vain();
    send_to(peer_, port_);
    order(kReceive);
  }
  void answer() {
    be_asked_in_vain();
    order(kSend);
    (void)wait_for_one(peer_);
  }
  void ask_in_vain() {
    order(kSend);
    (void)wait_for_one(peer_);
  }
  void be_asked_in_vain() {
    send_to(peer_, port_);
    order(kReceive);
  }
  [[nodiscard]] double requests() const { return where_.value("tacho_requests_total"); }
  [[nodiscard]] double in_flight() const { return where_.value("tacho_requests_in_flight"); }
  [[nodiscard]] double calls() const { return calls_to(where_, peer_); }
  /// Between two operations.
  [[nodiscard]] bool was_silent() const { return longest_ > kSilence / 2; }
  void finish() {
    node_.tell(0);
    node_.finish();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint64_t kSend = 1;
  static constexpr std::uint64_t kReceive = 2;

  void order(std::uint64_t word) {
    node_.tell(word);
    (void)node_.hear();
    const auto now = Clock::now();
    longest_ = std::max(longest_, now - std::exchange(last_, now));
  }

  bool connects_;
  Watched where_;
  UniqueFd peer_ = bound_socket(20301);
  Child node_{where_.directory(), [other = port_of(peer_), connects = connects_](Line& parent) {
                const UniqueFd socket = bound_socket(20311);
                if (connects) {
                  connect_to(socket, other);
                }
                parent.tell(port_of(socket));
                while (const auto word = parent.hear()) {
                  if (word == kSend) {
                    send_to(socket, other);
                  } else {
                    (void)wait_for_one(socket);
                  }
                  parent.tell();
                }
              }};
  std::uint16_t port_ = static_cast<std::uint16_t>(node_.hear());
  Clock::time_point last_ = Clock::now();
  Clock::duration longest_{};
};

}  // namespace

TEST_CASE("nodes that ask each other on one pair of ports are told apart by who speaks after a silence") {
  const bool begins = GENERATE(true, false);
  const int in_a_row = GENERATE(1, 20);
  CAPTURE(begins, in_a_row);
  constexpr int kBurstsOfEach = 3;
  Nodes nodes;
  for (int burst = 0; burst < 2 * kBurstsOfEach; ++burst) {
    std::this_thread::sleep_for(kSilence);
    for (int i = 0; i < in_a_row; ++i) {
      (burst % 2 == 0) == begins ? nodes.ask() : nodes.answer();
    }
  }
  CHECK(nodes.requests() == kBurstsOfEach * in_a_row);
  CHECK(nodes.calls() == kBurstsOfEach * in_a_row);
  CHECK(nodes.in_flight() == 0);
  nodes.finish();
}

TEST_CASE("nodes that were told apart once need no silence between their questions") {
  const bool begins = GENERATE(true, false);
  CAPTURE(begins);
  Nodes nodes;
  begins ? nodes.ask() : nodes.answer();
  std::this_thread::sleep_for(kSilence);
  for (int i = 0; i < kRequests; ++i) {
    begins ? nodes.answer() : nodes.ask();
    begins ? nodes.ask() : nodes.answer();
  }
  CHECK(nodes.requests() == kRequests + (begins ? 0 : 1));
  CHECK(nodes.calls() == kRequests + (begins ? 1 : 0));
  CHECK(nodes.in_flight() == 0);
  nodes.finish();
}

TEST_CASE("a node that is connected to the other one, and asks first, stays its client") {
  const bool connects = GENERATE(true, false);
  CAPTURE(connects);
  constexpr int kTimes = 3;
  Nodes nodes(connects);
  for (int i = 0; i < kTimes; ++i) {
    nodes.ask();
    std::this_thread::sleep_for(kSilence);
    nodes.answer();
    std::this_thread::sleep_for(kSilence);
  }
  CHECK(nodes.requests() == (connects ? 0 : kTimes));
  CHECK(nodes.calls() == (connects ? 2 * kTimes - 1 : kTimes));
  nodes.finish();
}

TEST_CASE("nodes that ask each other without any silence are the client and the server that they were at first") {
  const bool begins = GENERATE(true, false);
  CAPTURE(begins);
  Nodes nodes;
  for (int i = 0; i < kRequests; ++i) {
    begins ? nodes.ask() : nodes.answer();
    begins ? nodes.answer() : nodes.ask();
  }
  if (!nodes.was_silent()) {
    // The last answer to the one who is called, or of the one who calls, is taken for a question that nobody answers.
    CHECK(nodes.requests() == (begins ? 0 : 2 * kRequests - 1));
    CHECK(nodes.calls() == (begins ? 2 * kRequests - 1 : 0));
  }
  CHECK(nodes.requests() + nodes.calls() > 1.9 * kRequests);
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

TEST_CASE("of nodes that ask each other a question that is lost misleads until a silence of half a second") {
  const bool loses_call = GENERATE(true, false);
  CAPTURE(loses_call);
  Nodes nodes;
  nodes.ask();
  std::this_thread::sleep_for(kSilence);
  nodes.answer();
  std::this_thread::sleep_for(kSilence);
  loses_call ? nodes.ask_in_vain() : nodes.be_asked_in_vain();
  std::this_thread::sleep_for(kLongSilence);
  loses_call ? nodes.answer() : nodes.ask();
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
