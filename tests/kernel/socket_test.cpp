// Operations, bytes, requests and connections are counted exactly.

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;  // prime: no other count in here is a multiple
constexpr std::size_t kRequestBytes = 101;
constexpr std::size_t kReplyBytes = 307;

/// A server that serves `connections` one after the other, `requests` on each. It tells its port and, when all is done,
/// waits until it is told to close the connections, tells that they are closed, and ends when told so.
Child server_of(const Watched& where, int connections, int requests) {
  return Child(where.directory(), [connections, requests](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    std::vector<UniqueFd> open;
    for (int i = 0; i < connections; ++i) {
      open.push_back(accept_from(listener));
      serve(open.back(), requests, kRequestBytes, kReplyBytes);
    }
    parent.tell();
    (void)parent.hear();
    open.clear();
    parent.tell();
    (void)parent.hear();
  });
}

void check_turns(const Watched& where, double turns) {
  CHECK(where.value("tacho_requests_total") == turns);
  CHECK(where.observations("tacho_request_queue_seconds") == turns);
  CHECK(where.observations("tacho_request_service_seconds") == turns);
  CHECK(where.observations("tacho_request_duration_seconds") == turns);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  CHECK(where.sends() == turns);
  CHECK(where.receives() == turns);
  CHECK(where.value("tacho_socket_bytes_total", {{"direction", "receive"}}) == turns * kRequestBytes);
  CHECK(where.value("tacho_socket_bytes_total", {{"direction", "send"}}) == turns * kReplyBytes);
  CHECK(where.value("tacho_socket_intervals_total", {{"direction", "send"}}) == turns - 1);
  CHECK(where.value("tacho_socket_idle_gaps_total", {{"direction", "send"}}) == 0);
}

}  // namespace

TEST_CASE("requests on kept connections are counted exactly") {
  for (const int connections : {1, 7}) {
    CAPTURE(connections);
    const Watched where;
    Child server = server_of(where, connections, kRequests);
    const auto port = static_cast<std::uint16_t>(server.hear());
    std::vector<UniqueFd> clients;
    for (int i = 0; i < connections; ++i) {
      clients.push_back(connect_tcp(port));
      ask(clients.back(), kRequests, kRequestBytes, kReplyBytes);
    }
    (void)server.hear();
    check_turns(where, connections * kRequests);
    CHECK(where.value("tacho_connections_total", {{"role", "server"}}) == connections);
    CHECK(where.value("tacho_connections_active", {{"role", "server"}}) == connections);
    CHECK(where.value("tacho_connections_total", {{"role", "client"}}) == 0);
    CHECK(where.observations("tacho_connection_accept_wait_seconds") == connections);
    clients.clear();
    server.tell();
    (void)server.hear();
    CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
    check_turns(where, connections * kRequests);
    server.tell();
    server.finish();
  }
}

TEST_CASE("a connection per request is counted exactly, whoever closes first") {
  for (const bool client_closes_first : {true, false}) {
    CAPTURE(client_closes_first);
    const Watched where;
    Child server(where.directory(), [client_closes_first](Line& parent) {
      const UniqueFd listener = listen_tcp();
      parent.tell(port_of(listener));
      for (int i = 0; i < kRequests; ++i) {
        UniqueFd connection = accept_from(listener);
        serve(connection, 1, kRequestBytes, kReplyBytes);
        if (client_closes_first) {
          char byte = 0;
          must(::recv(connection.get(), &byte, 1, 0) == 0, "end of the stream");
        }
      }
      parent.tell();
      (void)parent.hear();
    });
    const auto port = static_cast<std::uint16_t>(server.hear());
    for (int i = 0; i < kRequests; ++i) {
      const UniqueFd client = connect_tcp(port);
      ask(client, 1, kRequestBytes, kReplyBytes);
      if (!client_closes_first) {
        char byte = 0;
        CHECK(::recv(client.get(), &byte, 1, 0) == 0);
      }
    }
    (void)server.hear();
    CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
    check_turns(where, kRequests);
    CHECK(where.value("tacho_connections_total", {{"role", "server"}}) == kRequests);
    server.tell();
    server.finish();
  }
}

TEST_CASE("what transfers nothing does not count: peeks, EAGAIN, zero bytes, failures, the end of the stream") {
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    std::array<char, 64> data{};
    must(::recv(connection.get(), data.data(), data.size(), MSG_DONTWAIT) < 0 && errno == EAGAIN, "EAGAIN");
    parent.tell();
    must(::recv(connection.get(), data.data(), 10, MSG_PEEK | MSG_WAITALL) == 10, "peek");
    must(::recv(connection.get(), data.data(), 5, MSG_PEEK) == 5, "second peek");
    must(::recv(connection.get(), data.data(), 0, 0) == 0, "receive of nothing");
    must(::send(connection.get(), data.data(), 0, 0) == 0, "send of nothing");
    receive_once(connection, 10);
    send_once(connection, 20);
    must(::recv(connection.get(), data.data(), 1, 0) == 0, "end of the stream");
    must(::shutdown(connection.get(), SHUT_WR) == 0, "shutdown");
    must(::send(connection.get(), data.data(), 1, MSG_NOSIGNAL) < 0 && errno == EPIPE, "EPIPE");
    must(::send(connection.get(), reinterpret_cast<const void*>(1), 1, 0) < 0, "EPIPE or EFAULT");
    must(::send(-1, data.data(), 1, 0) < 0 && errno == EBADF, "EBADF");
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  (void)server.hear();
  send_once(client, 10);
  receive_once(client, 20);
  must(::shutdown(client.get(), SHUT_WR) == 0, "shutdown");
  (void)server.hear();
  CHECK(where.receives() == 1);
  CHECK(where.sends() == 1);
  CHECK(where.value("tacho_socket_bytes_total", {{"direction", "receive"}}) == 10);
  CHECK(where.value("tacho_socket_bytes_total", {{"direction", "send"}}) == 20);
  CHECK(where.value("tacho_requests_total") == 1);
  server.tell();
  server.finish();
}

TEST_CASE("a full send buffer counts what went through, not what was refused") {
  const Watched where;
  const Shared<std::uint64_t> accepted;
  Child server(where.directory(), [&accepted](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    const std::string block(1 << 16, 'x');
    int sends = 0;
    for (ssize_t sent = 0; sent >= 0; ++sends) {
      sent = ::send(connection.get(), block.data(), block.size(), MSG_DONTWAIT);
      *accepted += sent > 0 ? static_cast<std::uint64_t>(sent) : 0;
    }
    must(errno == EAGAIN, "EAGAIN");
    parent.tell(static_cast<std::uint64_t>(sends - 1));
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  const auto sends = static_cast<double>(server.hear());
  CHECK(sends > 1);
  CHECK(where.sends() == sends);
  CHECK(where.value("tacho_socket_bytes_total", {{"direction", "send"}}) == static_cast<double>(*accepted));
  CHECK(where.value("tacho_requests_total") == 0);  // nobody asked
  server.tell();
  server.finish();
}

TEST_CASE("what happens outside the cgroup is not counted") {
  const Watched where;
  Child outside("", [](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    serve(accept_from(listener), kRequests, 1, 1);
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(outside.hear()));
  ask(client, kRequests, 1, 1);
  (void)outside.hear();
  CHECK(where.sends() == 0);
  CHECK(where.receives() == 0);
  CHECK(where.value("tacho_connections_total", {{"role", "server"}}) == 0);
  outside.tell();
  outside.finish();
}

TEST_CASE("a client's connections and operations are its own") {
  const Watched where;
  const UniqueFd listener = listen_tcp();
  Child client(where.directory(), [port = port_of(listener)](Line& parent) {
    const UniqueFd connection = connect_tcp(port);
    ask(connection, kRequests, kRequestBytes, kReplyBytes);
    parent.tell();
    (void)parent.hear();
  });
  serve(accept_from(listener), kRequests, kRequestBytes, kReplyBytes);
  (void)client.hear();
  CHECK(where.sends() == kRequests);
  CHECK(where.receives() == kRequests);
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_connections_total", {{"role", "client"}}) == 1);
  CHECK(where.value("tacho_connections_total", {{"role", "server"}}) == 0);
  client.tell();
  client.finish();
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "client"}}) == 0; }));
}
