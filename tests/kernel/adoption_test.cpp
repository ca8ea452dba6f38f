// Sockets that are older than tacho, and calls to dependencies.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;

/// A process with a listening socket, an accepted and an outgoing connection. Told how often, it answers requests, each
/// after a call to `dependency`.
Child middle_of(const std::string& cgroup, std::uint16_t dependency) {
  return Child(cgroup, [dependency](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd up = accept_from(listener);
    const UniqueFd down = connect_tcp(dependency);
    parent.tell();
    while (const auto count = parent.hear()) {
      for (std::uint64_t i = 0; i < count; ++i) {
        receive_once(up, 10);
        ask(down, 1, 30, 40);
        send_once(up, 20);
      }
      parent.tell();
    }
  });
}

void check_middle(const Page& page, const std::string& peer) {
  const Labels target{{"target", "t"}};
  const auto with = [](const char* name, const std::string& value) { return Labels{{"target", "t"}, {name, value}}; };
  CHECK(page.value("tacho_requests_total", target) == kRequests);
  CHECK(page.value("tacho_dependency_calls_total", with("peer", peer)) == kRequests);
  CHECK(page.value("tacho_dependency_duration_seconds_count", with("peer", peer)) == kRequests);
  CHECK(page.value("tacho_connections_active", with("role", "server")) == 1);
  CHECK(page.value("tacho_connections_active", with("role", "client")) == 1);
  CHECK(page.value("tacho_socket_operations_total", with("direction", "send")) == 2 * kRequests);
  CHECK(page.value("tacho_socket_operations_total", with("direction", "receive")) == 2 * kRequests);
  CHECK(page.value("tacho_requests_in_flight", target) == 0);
}

}  // namespace

TEST_CASE("connections that are older than tacho get their role, newer ones too") {
  for (const bool tacho_first : {true, false}) {
    CAPTURE(tacho_first);
    const Cgroup cgroup(playground() + "/" + unique_name());
    auto config = watching(cgroup.path());
    config.probes.poll.enabled = false;
    std::unique_ptr<Running> tacho;
    if (tacho_first) {
      tacho = std::make_unique<Running>(config);
    }
    const UniqueFd dependency = listen_tcp();
    Child middle = middle_of(cgroup.directory(), port_of(dependency));
    const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(middle.hear()));
    const UniqueFd called = accept_from(dependency);
    (void)middle.hear();
    if (!tacho_first) {
      tacho = std::make_unique<Running>(config);
    }
    middle.tell(kRequests);
    for (int i = 0; i < kRequests; ++i) {
      send_once(client, 10);
      serve(called, 1, 30, 40);
      receive_once(client, 20);
    }
    (void)middle.hear();
    check_middle(tacho->page(), "127.0.0.1:" + std::to_string(port_of(dependency)));
    middle.tell(0);
    middle.finish();
    CHECK(tacho->wait_for([&] {
      const Page page = tacho->page();
      return page.value("tacho_connections_active", {{"target", "t"}, {"role", "server"}}) == 0 &&
             page.value("tacho_connections_active", {{"target", "t"}, {"role", "client"}}) == 0;
    }));
  }
}

TEST_CASE("a connection from a port that is listened on is a call, however old it is") {
  const bool older = GENERATE(true, false);
  CAPTURE(older);
  const Cgroup cgroup(playground() + "/" + unique_name());
  const UniqueFd dependency = listen_tcp();
  const auto to = loopback(port_of(dependency));
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  std::unique_ptr<Running> tacho;
  if (!older) {
    tacho = std::make_unique<Running>(config);
  }
  Child node(cgroup.directory(), [&to](Line& parent) {
    const auto bound = [](std::uint16_t port) {
      UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const int on = 1;
      must(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0, "SO_REUSEPORT");
      const sockaddr_in address = loopback(port);
      must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "bind");
      return socket;
    };
    const UniqueFd listener = bound(0);
    must(::listen(listener.get(), 8) == 0, "listen");
    const UniqueFd connection = bound(port_of(listener));
    must(::connect(connection.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0, "connect");
    parent.tell();
    (void)parent.hear();
    ask(connection, kRequests, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  (void)node.hear();
  const UniqueFd called = accept_from(dependency);
  if (older) {
    tacho = std::make_unique<Running>(config);
  }
  node.tell();
  serve(called, kRequests, 10, 20);
  (void)node.hear();
  const Page page = tacho->page();
  CHECK(page.value("tacho_requests_total") == 0);
  CHECK(page.sum("tacho_dependency_calls_total", {{"target", "t"}}) == kRequests);
  node.tell();
  node.finish();
}

namespace {

struct Listening {
  int protocol = IPPROTO_TCP;
  int backlog = 0;
  bool is_closed = false;    ///< by a server that drains, or takes one connection only
  bool shares_port = false;  ///< SO_REUSEPORT, which its connections inherit
};

/// A server whose one connection is older than tacho, and is asked then.
void check_older(const Listening& listening, int requests) {
  CAPTURE(listening.protocol, listening.backlog, listening.is_closed, listening.shares_port);
  const Cgroup cgroup(playground() + "/" + unique_name());
  Child server(cgroup.directory(), [&listening](Line& parent) {
    UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, listening.protocol));
    const sockaddr_in any = loopback(0);
    const int shares = listening.shares_port ? 1 : 0;
    must(::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEPORT, &shares, sizeof(shares)) == 0, "SO_REUSEPORT");
    must(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0, "bind");
    must(::listen(listener.get(), listening.backlog) == 0, "listen");
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    if (listening.is_closed) {
      listener.reset();
    }
    parent.tell();
    (void)parent.hear();
    serve(connection, kRequests, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, listening.protocol));
  const sockaddr_in to = loopback(static_cast<std::uint16_t>(server.hear()));
  must(::connect(client.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0, "connect");
  (void)server.hear();
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  Running tacho(config);
  server.tell();
  ask(client, kRequests, 10, 20);
  (void)server.hear();
  const Page page = tacho.page();
  CHECK(page.value("tacho_requests_total") == requests);
  CHECK(page.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
}

}  // namespace

TEST_CASE("a connection that is older than tacho is served, whatever has become of its listening socket") {
  for (const int protocol : {IPPROTO_TCP, IPPROTO_MPTCP}) {
    if (!UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol))) {
      WARN("skipped: this kernel gives no MPTCP sockets (net.mptcp.enabled)");
      continue;
    }
    check_older({.protocol = protocol, .backlog = 8, .is_closed = true}, kRequests);
    check_older({.protocol = protocol, .backlog = 1, .is_closed = true}, kRequests);
    check_older({.protocol = protocol, .backlog = 8, .shares_port = true}, kRequests);
    check_older({.protocol = protocol, .backlog = 8, .is_closed = true, .shares_port = true}, kRequests);
  }
}

TEST_CASE("a connection that does not show that it was accepted has the role of its port") {
  check_older({.backlog = 0, .is_closed = false}, kRequests);
  check_older({.backlog = 0, .is_closed = false, .shares_port = true}, kRequests);
  check_older({.backlog = 0, .is_closed = true}, 0);
}

TEST_CASE("a request that is open when tacho starts ends as a reply without a request, and the next one counts") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Child server(cgroup.directory(), [](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    receive_once(connection, 10);
    parent.tell();
    (void)parent.hear();
    send_once(connection, 10);
    serve(connection, kRequests, 10, 10);
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  send_once(client, 10);
  (void)server.hear();
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  Running tacho(config);
  CHECK(tacho.page().value("tacho_requests_in_flight") == 0);
  server.tell();
  receive_once(client, 10);
  ask(client, kRequests, 10, 10);
  (void)server.hear();
  CHECK(tacho.page().value("tacho_requests_total") == kRequests);
  server.tell();
  server.finish();
}

TEST_CASE("a datagram server that is older than tacho serves clients with ports that they chose, too") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  Child server = echo_server(cgroup.directory(), 0, kRequests);
  const auto port = static_cast<std::uint16_t>(server.hear());
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  Running tacho(config);
  // The first one has a port that the kernel chose, as most have.
  for (std::uint16_t i = 0; i < kRequests; ++i) {
    const UniqueFd client = bound_socket(i == 0 ? 0 : static_cast<std::uint16_t>(22000 + i));
    send_to(client, port);
    (void)spin_for(client);
  }
  (void)server.hear();
  CHECK(tacho.page().value("tacho_requests_total") == kRequests);
  CHECK(tacho.page().value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
}

namespace {

/// What a checkpoint keeps of a connection (CRIU): both ends' addresses, positions and window.
struct Checkpoint {
  sockaddr_in own{};
  sockaddr_in peer{};
  std::array<std::uint32_t, 2> positions{};  // of what is received, of what is sent
  tcp_repair_window window{};
};

template <class Value>
void get(const UniqueFd& socket, int option, Value& value) {
  socklen_t length = sizeof(value);
  must(::getsockopt(socket.get(), IPPROTO_TCP, option, &value, &length) == 0, "getsockopt");
}

template <class Value>
void set(const UniqueFd& socket, int option, const Value& value) {
  must(::setsockopt(socket.get(), IPPROTO_TCP, option, &value, sizeof(value)) == 0, "setsockopt");
}

/// Nothing of it is left, and the other end hears nothing.
Checkpoint take_down(UniqueFd& socket) {
  Checkpoint found;
  socklen_t length = sizeof(found.own);
  must(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&found.own), &length) == 0, "getsockname");
  must(::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&found.peer), &length) == 0, "getpeername");
  set(socket, TCP_REPAIR, 1);
  for (const unsigned queue : {0U, 1U}) {
    set(socket, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE + queue);
    get(socket, TCP_QUEUE_SEQ, found.positions.at(queue));
  }
  set(socket, TCP_REPAIR_QUEUE, TCP_NO_QUEUE);
  get(socket, TCP_REPAIR_WINDOW, found.window);
  socket.reset();
  return found;
}

UniqueFd restore(const Checkpoint& found) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  set(socket, TCP_REPAIR, 1);
  must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&found.own), sizeof(found.own)) == 0, "bind");
  for (const unsigned queue : {0U, 1U}) {
    set(socket, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE + queue);
    set(socket, TCP_QUEUE_SEQ, found.positions.at(queue));
  }
  set(socket, TCP_REPAIR_QUEUE, TCP_NO_QUEUE);
  must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&found.peer), sizeof(found.peer)) == 0, "connect");
  set(socket, TCP_REPAIR_WINDOW, found.window);
  set(socket, TCP_REPAIR, 0);
  return socket;
}

}  // namespace

TEST_CASE("connections that are restored from a checkpoint serve and call as before") {
  const Watched where;
  const UniqueFd dependency = listen_tcp();
  Child middle(where.directory(), [port = port_of(dependency)](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    UniqueFd served = accept_from(listener);
    UniqueFd called = connect_tcp(port);
    for (int times = 0; times < 2; ++times) {
      parent.tell();
      for (int i = 0; i < kRequests; ++i) {
        receive_once(served, 10);
        ask(called, 1, 30, 40);
        send_once(served, 20);
      }
      parent.tell();
      (void)parent.hear();
      served = restore(take_down(served));
      called = restore(take_down(called));
    }
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(middle.hear()));
  const UniqueFd called = accept_from(dependency);
  const std::string peer = peer_at(port_of(dependency));
  for (int times = 1; times <= 2; ++times) {
    // Who hears nothing at the moment would be taken for gone.
    (void)middle.hear();
    for (int i = 0; i < kRequests; ++i) {
      send_once(client, 10);
      serve(called, 1, 30, 40);
      receive_once(client, 20);
    }
    (void)middle.hear();
    CHECK(where.value("tacho_requests_total") == times * kRequests);
    CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer}}) == times * kRequests);
    CHECK(where.value("tacho_requests_in_flight") == 0);
    middle.tell();
  }
  middle.finish();
}
