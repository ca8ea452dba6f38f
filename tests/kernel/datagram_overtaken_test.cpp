// Datagrams that are read before the hook of their arrival has run, on another CPU.

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

TEST_CASE("an answer that is read before its arrival is told is no request") {
  // Who asks spins: some answers are read while the one who sent them has not come to the hook of their arrival.
  constexpr int kCalls = 20000;
  const Watched where;
  const UniqueFd peer = bound_socket(0);
  const std::uint16_t peer_port = port_of(peer);
  Child client(where.directory(), [&](Line& parent) {
    const UniqueFd socket = bound_socket(20031);
    parent.tell(port_of(socket));
    (void)parent.hear();  // something has come
    for (int i = 0; i < kCalls; ++i) {
      send_to(socket, peer_port);
      (void)spin_for(socket);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto client_port = static_cast<std::uint16_t>(client.hear());
  send_to(peer, client_port);
  client.tell();
  for (int i = 0; i < kCalls; ++i) {
    (void)spin_for(peer);
    send_to(peer, client_port);
  }
  (void)client.hear();
  CHECK(where.value("tacho_requests_total") == 0);
  const std::string name = "127.0.0.1:" + std::to_string(peer_port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", name}}) == kCalls);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  client.tell();
  client.finish();
}

TEST_CASE("who is read before its arrival is told is served, though the socket has called another") {
  constexpr int kSockets = 300;
  constexpr int kRequests = 3;
  const Watched where;
  const UniqueFd peer = bound_socket(0);
  const std::uint16_t peer_port = port_of(peer);
  Child server(where.directory(), [&](Line& parent) {
    for (int i = 0; i < kSockets; ++i) {
      const UniqueFd socket = bound_socket(0);
      send_to(socket, peer_port);
      parent.tell(port_of(socket));
      (void)spin_for(socket);
      send_back(socket, kRequests);
      (void)parent.hear();
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kSockets; ++i) {
    const UniqueFd client = bound_socket(0);
    const auto port = static_cast<std::uint16_t>(server.hear());
    (void)spin_for(peer);
    send_to(peer, port);
    for (int request = 0; request < kRequests; ++request) {
      send_to(client, port);
      (void)spin_for(client);
    }
    server.tell();
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kSockets * kRequests);
  const std::string name = "127.0.0.1:" + std::to_string(peer_port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", name}}) == kSockets);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  server.tell();
  server.finish();
}

TEST_CASE("who asks behind one that was read before its arrival was told is served, and so is that one") {
  // The memory of a datagram that was received is the next one's: what is told of the first late is none of that.
  constexpr int kSockets = 400;
  constexpr int kRounds = 3;
  const Watched where;
  const UniqueFd peer = bound_socket(0);
  const std::uint16_t peer_port = port_of(peer);
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(bound_socket(0));
  }
  const int requests = kRounds * static_cast<int>(clients.size());
  Child server(where.directory(), [&](Line& parent) {
    for (int i = 0; i < kSockets; ++i) {
      const UniqueFd socket = bound_socket(0);
      send_to(socket, peer_port);
      parent.tell(port_of(socket));
      (void)spin_for(socket);
      for (int request = 0; request < requests; ++request) {
        sockaddr_in client{};
        spin_for(socket, client);
        send_to(socket, ntohs(client.sin_port));
      }
      (void)parent.hear();
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kSockets; ++i) {
    const auto port = static_cast<std::uint16_t>(server.hear());
    (void)spin_for(peer);
    send_to(peer, port);
    for (int request = 0; request < requests; ++request) {
      const UniqueFd& client = clients[static_cast<std::size_t>(request) % clients.size()];
      send_to(client, port);
      (void)spin_for(client);
    }
    server.tell();
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kSockets * requests);
  const std::string name = "127.0.0.1:" + std::to_string(peer_port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", name}}) == kSockets);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
}

TEST_CASE("whom a server asks for the first request that it reads is no client, whenever its arrival is told") {
  constexpr int kSockets = 500;
  constexpr int kRequests = 3;
  const Watched where;
  const UniqueFd upstream = bound_socket(0);
  const std::uint16_t upstream_port = port_of(upstream);
  Child resolver(where.directory(), [&](Line& parent) {
    for (int i = 0; i < kSockets; ++i) {
      const UniqueFd socket = bound_socket(0);
      parent.tell(port_of(socket));
      for (int request = 0; request < kRequests; ++request) {
        sockaddr_in client{};
        spin_for(socket, client);
        send_to(socket, upstream_port);
        (void)spin_for(socket);
        send_to(socket, ntohs(client.sin_port));
      }
      (void)parent.hear();
    }
    parent.tell();
    (void)parent.hear();
  });
  for (int i = 0; i < kSockets; ++i) {
    const UniqueFd client = bound_socket(0);
    const auto port = static_cast<std::uint16_t>(resolver.hear());
    for (int request = 0; request < kRequests; ++request) {
      send_to(client, port);
      (void)spin_for(upstream);
      send_to(upstream, port);
      (void)spin_for(client);
    }
    resolver.tell();
  }
  (void)resolver.hear();
  CHECK(where.value("tacho_requests_total") == kSockets * kRequests);
  const std::string name = "127.0.0.1:" + std::to_string(upstream_port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", name}}) == kSockets * kRequests);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  resolver.tell();
  resolver.finish();
}

TEST_CASE("whom a server asks for a request that was read before its arrival was told is no client") {
  constexpr int kRequests = 1200;
  // Whether the place where the kernel wrote the client's address is still that when the server asks.
  const bool keeps_address = GENERATE(true, false);
  CAPTURE(keeps_address);
  const Watched where;
  const UniqueFd upstream = bound_socket(0);
  const std::uint16_t upstream_port = port_of(upstream);
  Child resolver(where.directory(), [&](Line& parent) {
    const UniqueFd socket = bound_socket(20033);
    parent.tell(port_of(socket));
    for (int i = 0; i < kRequests; ++i) {
      sockaddr_in client{};
      sockaddr_in place{};
      spin_for(socket, keeps_address ? client : place);
      if (!keeps_address) {
        client = place;
        place = {};
      }
      send_to(socket, upstream_port);
      (void)spin_for(socket);
      send_to(socket, ntohs(client.sin_port));
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(resolver.hear());
  std::vector<UniqueFd> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(bound_socket(0));
  }
  for (std::size_t i = 0; i < kRequests; ++i) {
    const UniqueFd& client = clients[i % clients.size()];
    send_to(client, port);
    (void)spin_for(upstream);
    send_to(upstream, port);
    (void)spin_for(client);
  }
  (void)resolver.hear();
  const double requests = where.value("tacho_requests_total");
  const double calls =
      where.value("tacho_dependency_calls_total", {{"peer", "127.0.0.1:" + std::to_string(upstream_port)}});
  CHECK(requests + calls == 2 * kRequests);
  CHECK(requests >= kRequests);
  // Without it nothing tells who is who until one of the upstream's answers is read behind the hook of its arrival.
  CHECK(requests <= (keeps_address ? kRequests : kRequests * 1.1));
  CHECK(where.value("tacho_requests_in_flight") == 0);
  resolver.tell();
  resolver.finish();
}

TEST_CASE("a request that was read before its arrival was told does not cost the others their arrival") {
  constexpr int kAtOnce = 3000;
  constexpr int kLater = 60;
  constexpr auto kPause = std::chrono::milliseconds(2);
  const Watched where;
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd socket = bound_socket(20061);
    parent.tell(port_of(socket));
    send_back(socket, kAtOnce);
    for (int i = 0; i < kLater; ++i) {
      (void)parent.hear();  // it has come
      std::this_thread::sleep_for(kPause);
      send_back(socket);
    }
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(server.hear());
  const UniqueFd client = bound_socket(0);
  for (int i = 0; i < kAtOnce; ++i) {
    send_to(client, port);
    (void)spin_for(client);
  }
  const double before = where.value("tacho_request_queue_seconds_sum");
  for (int i = 0; i < kLater; ++i) {
    send_to(client, port);
    server.tell();
    (void)spin_for(client);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kAtOnce + kLater);
  CHECK(where.value("tacho_request_queue_seconds_sum") - before >= kLater * 0.002);
  server.tell();
  server.finish();
}
