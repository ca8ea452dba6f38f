// IPv6, unix and datagram sockets.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
// It needs the one before it.
#include <linux/vm_sockets.h>
#include <sys/un.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;

struct Name {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// An abstract unix address of this test's own.
Name unix_name() {
  const std::string text = playground() + unique_name();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(&address.sun_path[1], text.data(), text.size());
  Name name;
  std::memcpy(&name.storage, &address, sizeof(address));
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return name;
}

/// The loopback address of a family with this port.
Name loopback(int family, std::uint16_t port = 0) {
  Name name;
  if (family == AF_INET6) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_loopback;
    address.sin6_port = htons(port);
    std::memcpy(&name.storage, &address, sizeof(address));
    name.length = sizeof(address);
  } else {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    std::memcpy(&name.storage, &address, sizeof(address));
    name.length = sizeof(address);
  }
  return name;
}

UniqueFd bound_socket(int family, int type, const Name& name) {
  UniqueFd socket(::socket(family, type | SOCK_CLOEXEC, 0));
  must(::bind(socket.get(), name.get(), name.length) == 0, "bind");
  return socket;
}

Name name_of(const UniqueFd& socket) {
  Name name;
  name.length = sizeof(name.storage);
  must(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name.storage), &name.length) == 0, "getsockname");
  return name;
}

UniqueFd connected_socket(int family, int type, const Name& to) {
  UniqueFd socket(::socket(family, type | SOCK_CLOEXEC, 0));
  must(::connect(socket.get(), to.get(), to.length) == 0, "connect");
  return socket;
}

/// `count` datagrams are received and answered, one at a time.
void answer_datagrams(const UniqueFd& socket, int count) {
  std::array<char, 256> data{};
  for (int i = 0; i < count; ++i) {
    Name from;
    from.length = sizeof(from.storage);
    const auto size =
        ::recvfrom(socket.get(), data.data(), data.size(), 0, reinterpret_cast<sockaddr*>(&from.storage), &from.length);
    must(size > 0, "recvfrom");
    must(::sendto(socket.get(), data.data(), static_cast<std::size_t>(size), 0, from.get(), from.length) == size,
         "sendto");
  }
}

void check_turns(const Watched& where, double turns) {
  CHECK(where.value("tacho_requests_total") == turns);
  CHECK(where.observations("tacho_request_queue_seconds") == turns);
  CHECK(where.observations("tacho_request_service_seconds") == turns);
  CHECK(where.sends() == turns);
  CHECK(where.receives() == turns);
  CHECK(where.value("tacho_requests_in_flight") == 0);
}

}  // namespace

TEST_CASE("IPv6 connections count like others") {
  const Watched where;
  const Shared<Name> place;
  Child server(where.directory(), [&place](Line& parent) {
    const UniqueFd listener = bound_socket(AF_INET6, SOCK_STREAM, loopback(AF_INET6));
    must(::listen(listener.get(), 8) == 0, "listen");
    *place = name_of(listener);
    parent.tell();
    const UniqueFd connection = accept_from(listener);
    serve(connection, kRequests, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  (void)server.hear();
  const UniqueFd client = connected_socket(AF_INET6, SOCK_STREAM, *place);
  ask(client, kRequests, 10, 20);
  (void)server.hear();
  check_turns(where, kRequests);
  CHECK(where.value("tacho_connections_active", {{"role", "server"}}) == 1);
  server.tell();
  server.finish();
}

TEST_CASE("unix connections carry requests, stream and packet sockets alike") {
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    CAPTURE(type);
    const Watched where;
    const Name name = unix_name();
    Child server(where.directory(), [&name, type](Line& parent) {
      const UniqueFd listener = bound_socket(AF_UNIX, type, name);
      must(::listen(listener.get(), 8) == 0, "listen");
      parent.tell();
      for (int i = 0; i < 3; ++i) {
        const UniqueFd connection(::accept(listener.get(), nullptr, nullptr));
        serve(connection, kRequests, 10, 20);
      }
      parent.tell();
      (void)parent.hear();
    });
    (void)server.hear();
    for (int i = 0; i < 3; ++i) {
      const UniqueFd client = connected_socket(AF_UNIX, type, name);
      ask(client, kRequests, 10, 20);
    }
    (void)server.hear();
    check_turns(where, 3 * kRequests);
    CHECK(where.observations("tacho_connection_accept_wait_seconds") == 3);
    server.tell();
    server.finish();
  }
}

TEST_CASE("a request on a unix connection is in no figure of what is open") {
  const Watched where;
  const Name name = unix_name();
  Child server(where.directory(), [&name](Line& parent) {
    const UniqueFd listener = bound_socket(AF_UNIX, SOCK_STREAM, name);
    must(::listen(listener.get(), 8) == 0, "listen");
    parent.tell();
    const UniqueFd connection(::accept(listener.get(), nullptr, nullptr));
    serve(connection, 1, 10, 20);
    receive_once(connection, 10);
    parent.tell();
    (void)parent.hear();
  });
  (void)server.hear();
  const UniqueFd client = connected_socket(AF_UNIX, SOCK_STREAM, name);
  ask(client, 1, 10, 20);
  send_once(client, 10);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 1);
  CHECK(where.receives() == 2);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_connections_active", {{"role", "server"}}) == 0);
  CHECK(where.value("tacho_connections_total", {{"role", "server"}}) == 0);
  server.tell();
  server.finish();
}

TEST_CASE("datagrams that are answered are requests") {
  for (const int family : {AF_INET, AF_INET6}) {
    CAPTURE(family);
    const Watched where;
    const Shared<Name> place;
    Child server(where.directory(), [&place, family](Line& parent) {
      const UniqueFd socket = bound_socket(family, SOCK_DGRAM, loopback(family));
      *place = name_of(socket);
      parent.tell();
      answer_datagrams(socket, kRequests);
      parent.tell();
      (void)parent.hear();
    });
    (void)server.hear();
    const UniqueFd client = connected_socket(family, SOCK_DGRAM, *place);
    ask(client, kRequests, 40, 40);
    (void)server.hear();
    check_turns(where, kRequests);
    server.tell();
    server.finish();
  }
}

TEST_CASE("several datagrams that are open at once are each answered once") {
  const Watched where;
  const Shared<Name> place;
  Child server(where.directory(), [&place](Line& parent) {
    const UniqueFd socket = bound_socket(AF_INET, SOCK_DGRAM, loopback(AF_INET));
    *place = name_of(socket);
    parent.tell();
    (void)parent.hear();  // all have been sent
    std::array<char, 64> data{};
    std::vector<Name> from(kRequests);
    for (Name& name : from) {
      name.length = sizeof(name.storage);
      must(::recvfrom(socket.get(), data.data(), data.size(), 0, reinterpret_cast<sockaddr*>(&name.storage),
                      &name.length) == 8,
           "recvfrom");
    }
    parent.tell();
    (void)parent.hear();
    for (const Name& name : from) {
      must(::sendto(socket.get(), data.data(), 8, 0, name.get(), name.length) == 8, "sendto");
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)server.hear();
  const UniqueFd client = connected_socket(AF_INET, SOCK_DGRAM, *place);
  for (int i = 0; i < kRequests; ++i) {
    send_once(client, 8);
  }
  server.tell();
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_requests_in_flight") == kRequests);
  server.tell();
  (void)server.hear();
  check_turns(where, kRequests);
  server.tell();
  server.finish();
}

TEST_CASE("families that are not followed have no requests") {
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = VMADDR_CID_LOCAL;
  address.svm_port = VMADDR_PORT_ANY;
  const auto* any = reinterpret_cast<const sockaddr*>(&address);
  const UniqueFd listener(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener || ::bind(listener.get(), any, sizeof(address)) != 0) {
    WARN("skipped: this kernel has no vsock to itself (vsock_loopback)");
    return;
  }
  must(::listen(listener.get(), 1) == 0, "listen");
  socklen_t length = sizeof(address);
  must(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length) == 0, "getsockname");
  address.svm_cid = VMADDR_CID_LOCAL;
  const Watched where;
  Child client(where.directory(), [&address](Line& parent) {
    const UniqueFd connection(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
    must(::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0, "connect");
    // Served by whoever is watched.
    parent.tell();
    serve(connection, kRequests, 10, 20);
    parent.tell();
  });
  const UniqueFd connection = accept_from(listener);
  (void)client.hear();
  ask(connection, kRequests, 10, 20);
  (void)client.hear();
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.receives() == 0);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  client.finish();
}

TEST_CASE("the operations of a socket pair count, its turns do not") {
  const int type = GENERATE(SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM);
  CAPTURE(type);
  const Watched where;
  Child pair(where.directory(), [type](Line& parent) {
    std::array<int, 2> ends{};
    must(::socketpair(AF_UNIX, type, 0, ends.data()) == 0, "socketpair");
    const UniqueFd left(ends[0]);
    const UniqueFd right(ends[1]);
    for (int i = 0; i < kRequests; ++i) {
      send_once(left, 1);
      receive_once(right, 1);
      send_once(right, 1);
      receive_once(left, 1);
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)pair.hear();
  CHECK(where.sends() == 2 * kRequests);
  CHECK(where.receives() == 2 * kRequests);
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(shared().page().sum("tacho_dependency_calls_total", {{"cgroup", where.path()}}) == 0);
  pair.tell();
  pair.finish();
}
