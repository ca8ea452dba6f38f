// Connections that begin in an unusual way, and sockets that several use.

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kRequests = 23;

template <class Value>
void set_option(const UniqueFd& socket, int level, int name, const Value& value, const char* what) {
  must(::setsockopt(socket.get(), level, name, &value, sizeof(value)) == 0, what);
}

/// A network of its own in which data may come with the first packet (tcp_fastopen: client, server, without cookies).
void enter_fast_network() {
  must(::unshare(CLONE_NEWNET) == 0, "unshare");
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::snprintf(loopback.ifr_name, sizeof(loopback.ifr_name), "lo");
  loopback.ifr_flags = IFF_UP;
  must(::ioctl(socket.get(), SIOCSIFFLAGS, &loopback) == 0, "SIOCSIFFLAGS");
  std::ofstream file("/proc/sys/net/ipv4/tcp_fastopen");
  file << 0x207 << std::flush;
  must(file.good(), "tcp_fastopen");
}

/// Its connections do not hear plain acknowledgements (flags: ACK alone), so they stay half-open until data comes.
void turn_deaf(const UniqueFd& listener) {
  constexpr std::uint32_t kFlags = 13;
  constexpr std::uint32_t kAck = 0x10;
  std::array<sock_filter, 4> program{{{BPF_LD | BPF_B | BPF_ABS, 0, 0, kFlags},
                                      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, kAck},
                                      {BPF_RET | BPF_K, 0, 0, 0},
                                      {BPF_RET | BPF_K, 0, 0, 0xffffffff}}};
  set_option(listener, SOL_SOCKET, SO_ATTACH_FILTER, sock_fprog{.len = program.size(), .filter = program.data()},
             "SO_ATTACH_FILTER");
}

int state_of(const UniqueFd& socket) {
  tcp_info info{};
  socklen_t length = sizeof(info);
  must(::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0, "TCP_INFO");
  return info.tcpi_state;
}

const std::string kRequest(31, 'q');

/// A client whose request goes with its first packet.
UniqueFd ask_fast(const UniqueFd& listener) {
  const auto to = loopback(port_of(listener));
  UniqueFd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  must(::sendto(client.get(), kRequest.data(), kRequest.size(), MSG_FASTOPEN, reinterpret_cast<const sockaddr*>(&to),
                sizeof(to)) == static_cast<ssize_t>(kRequest.size()),
       "MSG_FASTOPEN");
  return client;
}

/// One request with the first packet, read and answered before the connection is established.
void exchange_fast(const UniqueFd& listener) {
  const UniqueFd client = ask_fast(listener);
  const UniqueFd server = accept_from(listener);
  must(state_of(server) == TCP_SYN_RECV, "half-open");
  serve(server, 1, kRequest.size(), 67);
  receive_once(client, 67);
}

double connections(const Watched& where, const char* name) {
  return where.value(name, {{"role", "client"}});
}

}  // namespace

TEST_CASE("a request that comes with the connection's first packet counts, and so does the connection") {
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    enter_fast_network();
    const UniqueFd listener = listen_tcp();
    set_option(listener, IPPROTO_TCP, TCP_FASTOPEN, 16, "TCP_FASTOPEN");
    turn_deaf(listener);
    for (int i = 0; i < kRequests; ++i) {
      exchange_fast(listener);
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_connections_total", {{"role", "server"}}) == kRequests);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  CHECK(where.value("tacho_connections_total", {{"role", "client"}}) == kRequests);
  CHECK(where.value("tacho_dependency_calls_total") == kRequests);
  server.tell();
  server.finish();
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
}

TEST_CASE("a request that comes with the connection's first packet has waited until it is read") {
  static constexpr auto kBusy = 50ms;
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    enter_fast_network();
    const UniqueFd listener = listen_tcp();
    set_option(listener, IPPROTO_TCP, TCP_FASTOPEN, 16, "TCP_FASTOPEN");
    for (int i = 0; i < kRequests; ++i) {
      const UniqueFd client = ask_fast(listener);
      std::this_thread::sleep_for(kBusy);
      const UniqueFd connection = accept_from(listener);
      serve(connection, 1, kRequest.size(), 67);
      receive_once(client, 67);
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)server.hear();
  const double least = kRequests * std::chrono::duration<double>(kBusy).count();
  CHECK(where.value("tacho_requests_total") == kRequests);
  for (const char* time : {"tacho_request_queue_seconds", "tacho_request_duration_seconds"}) {
    CAPTURE(time);
    // The connection is established a moment after the packet has come.
    CHECK(where.sum(time) >= least * 0.95);
    CHECK(where.sum(time) < least * 2);
  }
  server.tell();
  server.finish();
}

TEST_CASE("a connection that two targets use by turns is one at a time, and stays with one of them") {
  constexpr int kRounds = 100;
  const bool watched = GENERATE(true, false);
  CAPTURE(watched);
  const Watched first;
  const Watched second;
  const UniqueFd listener = listen_tcp();
  Child sender(first.directory(), [port = port_of(listener)](Line& parent) {
    const UniqueFd socket = connect_tcp(port);
    parent.tell(static_cast<std::uint64_t>(socket.get()));
    while (parent.hear() != 0) {
      send_once(socket, 10);
      parent.tell();
    }
  });
  const int descriptor = static_cast<int>(sender.hear());
  Child reader(watched ? second.directory() : "", [&](Line& parent) {
    const UniqueFd socket = take_from(sender.pid(), descriptor);
    while (parent.hear() != 0) {
      receive_once(socket, 20);
      parent.tell();
    }
  });
  const UniqueFd peer = accept_from(listener);
  for (int i = 0; i < kRounds; ++i) {
    sender.tell();
    (void)sender.hear();
    receive_once(peer, 10);
    send_once(peer, 20);
    reader.tell();
    (void)reader.hear();
  }
  // To and fro three times, if both are watched; who is not watched takes nothing.
  CHECK(connections(first, "tacho_connections_total") == (watched ? 2 : 1));
  CHECK(connections(second, "tacho_connections_total") == (watched ? 2 : 0));
  CHECK(connections(first, "tacho_connections_active") + connections(second, "tacho_connections_active") == 1);
  sender.tell(0);
  sender.finish();
  reader.tell(0);
  reader.finish();
}

TEST_CASE("a port is listened on until the last of its sockets is closed, also where all are older than tacho") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  // Nobody watches it while it listens and accepts; then it moves to where it is watched.
  Child server("", [](Line& parent) {
    const auto listen_too = [](std::uint16_t port) {
      UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      set_option(socket, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT");
      const auto address = loopback(port);
      must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "bind");
      must(::listen(socket.get(), 8) == 0, "listen");
      return socket;
    };
    const UniqueFd stays = listen_too(0);
    UniqueFd goes = listen_too(port_of(stays));
    parent.tell(port_of(stays));
    (void)parent.hear();
    // The kernel has given it to one of the two.
    std::array<pollfd, 2> both{
        {{.fd = stays.get(), .events = POLLIN, .revents = 0}, {.fd = goes.get(), .events = POLLIN, .revents = 0}}};
    must(::poll(both.data(), both.size(), -1) == 1, "poll");
    const UniqueFd connection = accept_from(both[0].revents != 0 ? stays : goes);
    parent.tell();
    (void)parent.hear();
    goes.reset();
    parent.tell();
    (void)parent.hear();
    serve(connection, kRequests, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  server.tell();
  (void)server.hear();
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  Running tacho(config);
  server.tell();
  (void)server.hear();
  move_to(cgroup.directory(), server.pid());
  server.tell();
  ask(client, kRequests, 10, 20);
  (void)server.hear();
  CHECK(tacho.page().value("tacho_requests_total", {{"target", "t"}}) == kRequests);
  CHECK(tacho.page().sum("tacho_dependency_calls_total", {{"target", "t"}}) == 0);
  server.tell();
  server.finish();
}

TEST_CASE("peers that many connections come to first at the same time take one place each") {
  constexpr std::size_t kPeers = 6;
  constexpr int kThreads = 8;
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  config.limits.max_peers = kPeers;
  Running tacho(config);
  std::vector<UniqueFd> listeners;
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < kPeers; ++i) {
    listeners.push_back(listen_tcp());
    ports.push_back(port_of(listeners.back()));
  }
  Child caller(cgroup.directory(), [&ports](Line& parent) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&ports] {
        for (const std::uint16_t port : ports) {
          ask(connect_tcp(port), 1, 10, 20);
        }
      });
    }
    threads.clear();
    parent.tell();
    (void)parent.hear();
  });
  std::vector<std::jthread> servers;
  for (const UniqueFd& listener : listeners) {
    servers.emplace_back([&listener] {
      for (int i = 0; i < kThreads; ++i) {
        serve(accept_from(listener), 1, 10, 20);
      }
    });
  }
  servers.clear();
  (void)caller.hear();
  const Page page = tacho.page();
  for (const std::uint16_t port : ports) {
    CHECK(page.value("tacho_dependency_calls_total",
                     {{"target", "t"}, {"peer", "127.0.0.1:" + std::to_string(port)}}) == kThreads);
  }
  CHECK(page.sum("tacho_dependency_calls_total", {{"target", "t"}, {"peer", "other"}}) == 0);
  caller.tell();
  caller.finish();
}

namespace {

/// Bound to a port beside others, and not connected.
UniqueFd bound_beside(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  set_option(socket, SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT");
  const sockaddr_in own = loopback(port);
  must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof(own)) == 0, "bind");
  return socket;
}

/// It listens, and hears nobody: who connects to its port waits.
UniqueFd deaf_listener() {
  UniqueFd socket = bound_beside(0);
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  set_option(socket, SOL_SOCKET, SO_ATTACH_FILTER, sock_fprog{.len = 1, .filter = &nothing}, "SO_ATTACH_FILTER");
  must(::listen(socket.get(), 1) == 0, "listen");
  return socket;
}

void begin_connection(const UniqueFd& socket, std::uint16_t port) {
  const sockaddr_in peer = loopback(port);
  must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) < 0 && errno == EINPROGRESS,
       "connect");
}

void await_connection(const UniqueFd& socket) {
  pollfd established{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  must(::poll(&established, 1, 10'000) == 1 && established.revents == POLLOUT, "the connection");
  must(::fcntl(socket.get(), F_SETFL, 0) == 0, "fcntl");
}

}  // namespace

TEST_CASE("a connection that both ends open carries calls at both, and no requests") {
  constexpr int kRounds = 9;
  const bool asks = GENERATE(true, false);
  CAPTURE(asks);
  const Watched where;
  const UniqueFd deaf = deaf_listener();
  Child watched(where.directory(), [asks, other = port_of(deaf)](Line& parent) {
    const UniqueFd socket = bound_beside(0);
    begin_connection(socket, other);
    parent.tell(port_of(socket));
    await_connection(socket);
    asks ? ask(socket, kRounds, 10, 20) : serve(socket, kRounds, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  const auto port = static_cast<std::uint16_t>(watched.hear());
  const UniqueFd socket = bound_beside(port_of(deaf));
  begin_connection(socket, port);
  await_connection(socket);
  asks ? serve(socket, kRounds, 10, 20) : ask(socket, kRounds, 10, 20);
  (void)watched.hear();
  CHECK(where.value("tacho_dependency_calls_total") == (asks ? kRounds : kRounds - 1));
  CHECK(where.value("tacho_connections_active", {{"role", "client"}}) == 1);
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  watched.tell();
  watched.finish();
}
