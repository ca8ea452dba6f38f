// Datagrams that get no reply, that are answered late, many at a time, empty or in one piece.

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kBytes = 40;

UniqueFd bound_socket() {
  UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto address = loopback(0);
  must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "bind");
  const int room = 4 << 20;
  must(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) == 0 ||
           ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) == 0,
       "SO_RCVBUF");
  return socket;
}

UniqueFd client_of(std::uint16_t port) {
  UniqueFd socket = bound_socket();
  const auto address = loopback(port);
  must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "connect");
  return socket;
}

/// @param flags of recvfrom(2); with MSG_DONTWAIT it never sleeps
sockaddr_in receive_from(const UniqueFd& socket, ssize_t bytes, int flags = 0) {
  std::array<char, 65536> data{};
  sockaddr_in from{};
  socklen_t length = sizeof(from);
  ssize_t received = 0;
  do {
    received = ::recvfrom(socket.get(), data.data(), data.size(), flags, reinterpret_cast<sockaddr*>(&from), &length);
  } while (received < 0 && errno == EAGAIN);
  must(received == bytes, "recvfrom");
  return from;
}

void send_to(const UniqueFd& socket, const sockaddr_in& to, std::size_t bytes) {
  const std::string data(bytes, 'd');
  must(::sendto(socket.get(), data.data(), data.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) ==
           static_cast<ssize_t>(bytes),
       "sendto");
}

/// A server that is told what to do with so many datagrams: the number, and one of Order in the lowest bits.
class DatagramServer {
 public:
  explicit DatagramServer(const std::string& cgroup, ssize_t bytes = kBytes)
      : child_(cgroup, [bytes](Line& parent) {
          const UniqueFd socket = bound_socket();
          parent.tell(port_of(socket));
          while (const auto order = parent.hear()) {
            for (std::uint64_t i = 0; i < order / kOrders; ++i) {
              const sockaddr_in from =
                  receive_from(socket, bytes, order % kOrders == kAnswerSpinning ? MSG_DONTWAIT : 0);
              if (order % kOrders != kIgnore) {
                send_to(socket, from, static_cast<std::size_t>(bytes));
              }
            }
            parent.tell();
          }
        }) {
    port_ = static_cast<std::uint16_t>(child_.hear());
  }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  void answer(std::uint64_t count) { order(count, kAnswer); }
  /// Some are read before the hook of their arrival has run.
  void answer_spinning(std::uint64_t count) { order(count, kAnswerSpinning); }
  void ignore(std::uint64_t count) { order(count, kIgnore); }
  void done() { (void)child_.hear(); }
  void finish() {
    child_.tell(0);
    child_.finish();
  }

 private:
  enum Order : std::uint64_t { kAnswer, kAnswerSpinning, kIgnore, kOrders };

  void order(std::uint64_t count, Order what) { child_.tell((count * kOrders) + what); }

  Child child_;
  std::uint16_t port_ = 0;
};

double in_flight(const Watched& where) {
  return where.value("tacho_requests_in_flight");
}

bool nothing_in_flight(const Watched& where) {
  return shared().wait_for([&where] { return in_flight(where) == 0; }, std::chrono::seconds(15));
}

}  // namespace

TEST_CASE("datagrams that get no reply are forgotten, counted, and do not cost the requests after them") {
  constexpr int kIgnored = 300;
  constexpr int kAnswered = 101;
  constexpr int kSpun = 20000;
  const Watched where;
  DatagramServer server(where.directory());
  const UniqueFd client = client_of(server.port());
  server.ignore(kIgnored);
  for (int i = 0; i < kIgnored; ++i) {
    send_once(client, kBytes);
  }
  server.done();
  CHECK(in_flight(where) == kIgnored);
  server.answer(kAnswered);
  ask(client, kAnswered, kBytes, kBytes);
  server.done();
  CHECK(where.value("tacho_requests_total") == kAnswered);
  CHECK(in_flight(where) == kIgnored);
  CHECK(nothing_in_flight(where));
  CHECK(where.value("tacho_oneway_messages_total") == kIgnored);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  server.answer_spinning(kSpun);
  const double before = where.sum("tacho_request_duration_seconds");
  const auto begun = std::chrono::steady_clock::now();
  ask(client, kSpun, kBytes, kBytes);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begun;
  server.done();
  CHECK(where.value("tacho_requests_total") == kAnswered + kSpun);
  // Each reply answers what came right before it, not what nobody has answered.
  CHECK(where.sum("tacho_request_duration_seconds") - before <= passed.count());
  server.finish();
}

TEST_CASE("what was open on a datagram socket when it was closed is forgotten like the rest") {
  const Watched where;
  DatagramServer server(where.directory());
  const UniqueFd client = client_of(server.port());
  server.ignore(17);
  for (int i = 0; i < 17; ++i) {
    send_once(client, kBytes);
  }
  server.done();
  server.finish();
  CHECK(in_flight(where) == 17);
  CHECK(nothing_in_flight(where));
  CHECK(where.value("tacho_oneway_messages_total") == 17);
}

TEST_CASE("as many datagrams as there are may be open at once, and replies may be late") {
  const bool late = GENERATE(false, true);
  const int clients = GENERATE(1, 7);
  CAPTURE(late, clients);
  constexpr int kOpen = 1001;
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    const UniqueFd socket = bound_socket();
    parent.tell(port_of(socket));
    (void)parent.hear();
    std::vector<sockaddr_in> from;
    for (int i = 0; i < kOpen; ++i) {
      from.push_back(receive_from(socket, kBytes));
    }
    parent.tell();
    (void)parent.hear();
    for (const sockaddr_in& client : from) {
      send_to(socket, client, kBytes);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  std::vector<UniqueFd> askers;
  for (int i = 0; i < clients; ++i) {
    askers.push_back(client_of(port));
  }
  for (std::size_t i = 0; i < kOpen; ++i) {
    send_once(askers[i % askers.size()], kBytes);
  }
  server.tell();
  (void)server.hear();
  CHECK(in_flight(where) == kOpen);
  if (late) {
    CHECK(nothing_in_flight(where));
    CHECK(where.value("tacho_oneway_messages_total") == kOpen);
  }
  server.tell();
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kOpen);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  CHECK(in_flight(where) == 0);
  server.tell();
  server.finish();
}

TEST_CASE("empty datagrams are operations, requests and replies") {
  constexpr int kRequests = 23;
  const Watched where;
  DatagramServer server(where.directory(), 0);
  const UniqueFd client = client_of(server.port());
  server.answer(kRequests);
  ask(client, kRequests, 0, 0);
  server.done();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.sends() == kRequests);
  CHECK(where.receives() == kRequests);
  server.finish();
}

namespace {

/// One send of so many bytes, as datagrams of `segment`.
void send_segments(const UniqueFd& socket, std::size_t bytes, std::uint16_t segment, sockaddr_in* to = nullptr) {
  std::string data(bytes, 'd');
  iovec part{.iov_base = data.data(), .iov_len = data.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(std::uint16_t))> control{};
  msghdr message{};
  message.msg_name = to;
  message.msg_namelen = to == nullptr ? 0 : sizeof(*to);
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_UDP;
  header->cmsg_type = UDP_SEGMENT;
  header->cmsg_len = CMSG_LEN(sizeof(segment));
  std::memcpy(CMSG_DATA(header), &segment, sizeof(segment));
  must(::sendmsg(socket.get(), &message, 0) == static_cast<ssize_t>(bytes), "sendmsg");
}

}  // namespace

TEST_CASE("calls that go in one piece (UDP_SEGMENT) are as many as they are") {
  const bool by_message = GENERATE(false, true);
  const bool connected = GENERATE(false, true);
  CAPTURE(by_message, connected);
  constexpr int kBatches = 101;
  constexpr int kSegments = 5;
  constexpr std::uint16_t kSegment = 100;
  const UniqueFd server = bound_socket();
  const std::uint16_t port = port_of(server);
  const Watched where;
  Child client(where.directory(), [by_message, connected, port](Line& parent) {
    const UniqueFd socket = connected ? client_of(port) : bound_socket();
    sockaddr_in to = loopback(port);
    const int segment = kSegment;
    if (!by_message) {
      must(::setsockopt(socket.get(), SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)) == 0, "UDP_SEGMENT");
    }
    for (int i = 0; i < kBatches; ++i) {
      if (by_message) {
        send_segments(socket, kSegments * kSegment, kSegment, connected ? nullptr : &to);
      } else if (connected) {
        send_once(socket, kSegments * kSegment);
      } else {
        send_to(socket, to, kSegments * kSegment);
      }
      for (int piece = 0; piece < kSegments; ++piece) {
        receive_once(socket, kSegment);
      }
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kBatches * kSegments; ++i) {
    const sockaddr_in from = receive_from(server, kSegment);
    send_to(server, from, kSegment);
  }
  (void)client.hear();
  CHECK(where.value("tacho_dependency_calls_total") == kBatches * kSegments);
  client.tell();
  client.finish();
}

TEST_CASE("datagrams that come or go in one piece (UDP_GRO, UDP_SEGMENT) are as many as they are") {
  const bool by_message = GENERATE(false, true);
  CAPTURE(by_message);
  constexpr int kBatches = 3001;
  constexpr int kSegments = 10;
  constexpr int kSegment = 100;
  const Watched where;
  Child server(where.directory(), [by_message](Line& parent) {
    const UniqueFd socket = bound_socket();
    const int on = 1;
    must(::setsockopt(socket.get(), SOL_UDP, UDP_GRO, &on, sizeof(on)) == 0, "UDP_GRO");
    const int segment = kSegment;
    if (!by_message) {
      must(::setsockopt(socket.get(), SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)) == 0, "UDP_SEGMENT");
    }
    parent.tell(port_of(socket));
    (void)parent.hear();  // the first has come; how long the segments are is told by its arrival only
    for (int i = 0; i < kBatches; ++i) {
      sockaddr_in from = receive_from(socket, kSegments * kSegment, MSG_DONTWAIT);
      if (!by_message) {
        send_to(socket, from, kSegments * kSegment);
        continue;
      }
      send_segments(socket, kSegments * kSegment, kSegment, &from);
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = client_of(static_cast<std::uint16_t>(server.hear()));
  const int segment = kSegment;
  must(::setsockopt(client.get(), SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment)) == 0, "UDP_SEGMENT");
  for (int i = 0; i < kBatches; ++i) {
    send_once(client, kSegments * kSegment);
    if (i == 0) {
      server.tell();
    }
    for (int piece = 0; piece < kSegments; ++piece) {
      receive_once(client, kSegment);
    }
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kBatches * kSegments);
  CHECK(in_flight(where) == 0);
  server.tell();
  server.finish();
}
