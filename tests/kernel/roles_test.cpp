// Roles of stream and unix sockets, whoever names, shares or has not yet connected them.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;

struct UnixName {
  /// @param in_files a path; else an abstract name
  explicit UnixName(const std::string& text, bool in_files = false) {
    address.sun_family = AF_UNIX;
    std::memcpy(&address.sun_path[in_files ? 0 : 1], text.data(), text.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t length = 0;
};

UniqueFd unix_socket(int type, const UnixName& name) {
  UniqueFd socket(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  must(::bind(socket.get(), name.get(), name.length) == 0, "bind");
  return socket;
}

/// Of the running kernel: 6.12 is {6, 12}.
std::pair<int, int> release() {
  utsname name{};
  must(::uname(&name) == 0, "uname");
  int major = 0;
  int minor = 0;
  must(std::sscanf(name.release, "%d.%d", &major, &minor) == 2, "release");
  return {major, minor};
}

void connect_unix(const UniqueFd& socket, const UnixName& name) {
  must(::connect(socket.get(), name.get(), name.length) == 0, "connect");
}

}  // namespace

TEST_CASE("a unix client with a name of its own is a client") {
  const Watched where;
  const std::string text = playground() + unique_name();
  const UnixName name(text);
  const UniqueFd listener = unix_socket(SOCK_STREAM, name);
  must(::listen(listener.get(), 8) == 0, "listen");
  Child client(where.directory(), [&](Line& parent) {
    const UniqueFd socket = unix_socket(SOCK_STREAM, UnixName(text + "-client"));
    connect_unix(socket, name);
    ask(socket, kRequests, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  serve(UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)), kRequests, 10, 20);
  (void)client.hear();
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", "unix:@" + text}}) == kRequests);
  client.tell();
  client.finish();
}

TEST_CASE("a unix client with a name of its own is a client also when nobody listens any more") {
  const int type = GENERATE(SOCK_STREAM, SOCK_SEQPACKET);
  const bool in_files = GENERATE(false, true);
  CAPTURE(type, in_files);
  if (release().first < 6) {
    WARN("skipped: before Linux 6.0 nothing tells such a client from a server");
    return;
  }
  const Watched client_side;
  const Watched server_side;
  const std::string text = (in_files ? "/tmp/" : playground()) + unique_name();
  const UnixName name(text, in_files);
  const UnixName own_name(text + "-client", in_files);
  Child server(server_side.directory(), [&](Line& parent) {
    UniqueFd listener = unix_socket(type, name);
    must(::listen(listener.get(), 8) == 0, "listen");
    parent.tell();
    const UniqueFd connection(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    listener.reset();
    parent.tell();
    serve(connection, kRequests, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  (void)server.hear();
  Child client(client_side.directory(), [&](Line& parent) {
    const UniqueFd socket = unix_socket(type, own_name);
    connect_unix(socket, name);
    parent.tell();
    (void)parent.hear();
    ask(socket, kRequests, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  (void)client.hear();
  (void)server.hear();
  client.tell();
  (void)client.hear();
  (void)server.hear();
  CHECK(client_side.value("tacho_requests_total") == 0);
  const std::string peer = (in_files ? "unix:" : "unix:@") + text;
  CHECK(client_side.value("tacho_dependency_calls_total", {{"peer", peer}}) == kRequests);
  CHECK(server_side.value("tacho_requests_total") == kRequests);
  CHECK(server_side.value("tacho_dependency_calls_total") == 0);
  client.tell();
  client.finish();
  server.tell();
  server.finish();
  if (in_files) {
    ::unlink(text.c_str());
    ::unlink((text + "-client").c_str());
  }
}

TEST_CASE("a unix datagram server's requests are counted") {
  const Watched where;
  const std::string text = playground() + unique_name();
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd socket = unix_socket(SOCK_DGRAM, UnixName(text));
    parent.tell();
    (void)parent.hear();
    const UnixName client(text + "-client");
    for (int i = 0; i < kRequests; ++i) {
      receive_once(socket, 10);
      const std::string reply(20, 'r');
      must(::sendto(socket.get(), reply.data(), reply.size(), 0, client.get(), client.length) == 20, "sendto");
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)server.hear();
  const UniqueFd client = unix_socket(SOCK_DGRAM, UnixName(text + "-client"));
  connect_unix(client, UnixName(text));
  server.tell();
  ask(client, kRequests, 10, 20);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
}

TEST_CASE("a target with ports counts no servers on unix sockets, which have none") {
  const bool with_ports = GENERATE(true, false);
  CAPTURE(with_ports);
  const Cgroup cgroup(playground() + "/" + unique_name());
  const std::string text = playground() + unique_name();
  Server wanted(cgroup.directory());
  // Two connections to a listening socket older than tacho, one open already; and datagrams.
  Child server(cgroup.directory(), [&](Line& parent) {
    const UniqueFd listener = unix_socket(SOCK_STREAM, UnixName(text));
    must(::listen(listener.get(), 8) == 0, "listen");
    const UniqueFd datagrams = unix_socket(SOCK_DGRAM, UnixName(text + "-datagrams"));
    parent.tell();
    const auto accept = [&] { return UniqueFd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)); };
    const UniqueFd older = accept();
    serve(older, 1, 10, 20);
    (void)parent.hear();
    serve(older, kRequests, 10, 20);
    serve(accept(), kRequests, 10, 20);
    const UnixName client(text + "-client");
    for (int i = 0; i < kRequests; ++i) {
      receive_once(datagrams, 10);
      const std::string reply(20, 'r');
      must(::sendto(datagrams.get(), reply.data(), reply.size(), 0, client.get(), client.length) == 20, "sendto");
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)server.hear();
  const auto connect_new = [&] {
    UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connect_unix(client, UnixName(text));
    return client;
  };
  const UniqueFd older = connect_new();
  ask(older, 1, 10, 20);
  auto config = watching(cgroup.path());
  if (with_ports) {
    config.targets.front().ports = {wanted.port()};
  }
  Running tacho(config);
  server.tell();
  ask(older, kRequests, 10, 20);
  ask(connect_new(), kRequests, 10, 20);
  const UniqueFd datagrams = unix_socket(SOCK_DGRAM, UnixName(text + "-client"));
  connect_unix(datagrams, UnixName(text + "-datagrams"));
  ask(datagrams, kRequests, 10, 20);
  (void)server.hear();
  wanted.ask(7);
  const Page page = tacho.page();
  CHECK(page.value("tacho_requests_total") == (with_ports ? 0 : 3 * kRequests) + 7);
  CHECK(page.value("tacho_requests_in_flight") == 0);
  server.tell();
  server.finish();
  wanted.finish();
}

TEST_CASE("a socket that is not connected yet when tacho starts is no open connection") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  const UniqueFd listener = listen_tcp();
  Child client(cgroup.directory(), [port = port_of(listener)](Line& parent) {
    const UniqueFd idle(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const UniqueFd later(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    parent.tell();
    (void)parent.hear();
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    must(::connect(later.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0, "connect");
    ask(later, kRequests, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  (void)client.hear();
  auto config = watching(cgroup.path());
  config.probes.poll.enabled = false;
  Running tacho(config);
  const Labels role{{"target", "t"}, {"role", "client"}};
  CHECK(tacho.page().value("tacho_connections_active", role) == 0);
  CHECK(tacho.page().value("tacho_connections_total", role) == 0);
  client.tell();
  serve(accept_from(listener), kRequests, 10, 20);
  (void)client.hear();
  CHECK(tacho.page().value("tacho_connections_total", role) == 1);
  CHECK(tacho.page().value("tacho_dependency_calls_total", {{"target", "t"}}) == kRequests);
  client.tell();
  client.finish();
}

TEST_CASE("a socket that is disconnected calls another peer, or listens, as a new one would") {
  const auto disconnect = [](const UniqueFd& socket) {
    const sockaddr nobody{.sa_family = AF_UNSPEC, .sa_data = {}};
    must(::connect(socket.get(), &nobody, sizeof(nobody)) == 0, "disconnect");
  };
  const Watched where;
  const std::array<UniqueFd, 2> listeners{listen_tcp(), listen_tcp()};
  const std::array<std::uint16_t, 2> ports{port_of(listeners[0]), port_of(listeners[1])};
  Child caller(where.directory(), [&](Line& parent) {
    const UniqueFd socket = connect_tcp(ports[0]);
    // Of the last call no answer is read.
    ask(socket, kRequests, 10, 20);
    send_once(socket, 10);
    (void)parent.hear();
    disconnect(socket);
    const sockaddr_in second = loopback(ports[1]);
    must(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&second), sizeof(second)) == 0, "connect");
    ask(socket, kRequests, 10, 20);
    (void)parent.hear();
    disconnect(socket);
    const sockaddr_in any = loopback(0);
    must(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(any)) == 0, "bind");
    must(::listen(socket.get(), 8) == 0, "listen");
    parent.tell(port_of(socket));
    serve(accept_from(socket), kRequests, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  {
    const UniqueFd first = accept_from(listeners[0]);
    serve(first, kRequests, 10, 20);
    receive_once(first, 10);
    caller.tell();
    const UniqueFd second = accept_from(listeners[1]);
    serve(second, kRequests, 10, 20);
    caller.tell();
  }
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(caller.hear()));
  ask(client, kRequests, 10, 20);
  (void)caller.hear();
  for (const std::uint16_t port : ports) {
    CHECK(where.value("tacho_dependency_calls_total", {{"peer", "127.0.0.1:" + std::to_string(port)}}) == kRequests);
  }
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.value("tacho_connections_total", {{"role", "server"}}) == 1);
  CHECK(where.value("tacho_connections_total", {{"role", "client"}}) == 2);
  caller.tell();
  caller.finish();
}
