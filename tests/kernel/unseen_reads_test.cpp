// Data that is read past the hooks of receives: by splice, where functions of the kernel may not be hooked.

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <system_error>
#include <thread>

#include "kernel/support/child.h"
#include "kernel/support/place.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/threads.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;

namespace {

constexpr int kRequests = 23;
constexpr std::size_t kSize = 10;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    must(::pipe(ends.data()) == 0, "pipe");
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  UniqueFd out;
  UniqueFd in;
};

void splice_all(const UniqueFd& from, const UniqueFd& to, std::size_t size) {
  while (size > 0) {
    const ssize_t moved = ::splice(from.get(), nullptr, to.get(), nullptr, size, 0);
    must(moved > 0, "splice");
    size -= static_cast<std::size_t>(moved);
  }
}

}  // namespace

TEST_CASE("requests that are spliced to a pipe count when they are answered") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    const Pipe pipe;
    for (int i = 0; i < kRequests; ++i) {
      splice_all(connection, pipe.in, kSize);
      splice_all(pipe.out, connection, kSize);
      send_once(connection, kSize);  // the rest of the reply
    }
    serve(connection, kRequests, kSize, 2 * kSize);
  });
  const UniqueFd client = connect_to(server);
  ask(client, 2 * kRequests, kSize, 2 * kSize);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 2 * kRequests);
  CHECK(where.observations("tacho_request_duration_seconds") == 2 * kRequests);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  server.tell();
  (void)server.hear();
  server.tell();
  server.finish();
}

TEST_CASE("a request whose body is spliced is one, however many sends its reply takes") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    const Pipe pipe;
    std::array<char, kSize> body{};
    for (int i = 0; i < kRequests; ++i) {
      receive_once(connection, kSize);
      splice_all(connection, pipe.in, kSize);
      must(::read(pipe.out.get(), body.data(), kSize) == kSize, "read");
      send_once(connection, kSize);
      send_once(connection, kSize);
    }
  });
  const UniqueFd client = connect_to(server);
  ask(client, kRequests, 2 * kSize, 2 * kSize);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  server.tell();
  (void)server.hear();
  server.tell();
  server.finish();
}

TEST_CASE("the end of the stream is no request, nor is what is sent behind it") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line&) {
    serve(connection, 1, kSize, kSize);
    char byte = 0;
    must(::recv(connection.get(), &byte, 1, 0) == 0, "recv at the end");
    for (int i = 0; i < kRequests; ++i) {
      send_once(connection, kSize);
    }
  });
  const UniqueFd client = connect_to(server);
  ask(client, 1, kSize, kSize);
  must(::shutdown(client.get(), SHUT_WR) == 0, "shutdown");
  receive_once(client, kRequests * kSize);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 1);
  server.tell();
  (void)server.hear();
  server.tell();
  server.finish();
}

TEST_CASE("a call in several sends is one, where the answer before was spliced in part") {
  const Watched where;
  const UniqueFd listener = listen_tcp();
  Child client(where.directory(), [port = port_of(listener)](Line& parent) {
    const UniqueFd socket = connect_tcp(port);
    const Pipe pipe;
    std::array<char, kSize> read{};
    for (int i = 0; i < kRequests; ++i) {
      send_once(socket, kSize);
      send_once(socket, kSize);
      receive_once(socket, kSize);
      splice_all(socket, pipe.in, kSize);
      must(::read(pipe.out.get(), read.data(), kSize) == kSize, "read");
    }
    parent.tell();
    (void)parent.hear();
  });
  serve(accept_from(listener), kRequests, 2 * kSize, 2 * kSize);
  (void)client.hear();
  CHECK(where.value("tacho_dependency_calls_total") == kRequests);
  client.tell();
  client.finish();
}

TEST_CASE("calls whose answers are spliced to a pipe count, the last one at the connection's end") {
  const Watched where;
  const UniqueFd listener = listen_tcp();
  Child client(where.directory(), [port = port_of(listener)](Line& parent) {
    UniqueFd socket = connect_tcp(port);
    const Pipe pipe;
    std::array<char, kSize> read{};
    for (int i = 0; i < kRequests; ++i) {
      send_once(socket, kSize);
      splice_all(socket, pipe.in, kSize);
      must(::read(pipe.out.get(), read.data(), kSize) == kSize, "read");
    }
    socket.reset();
    parent.tell();
    (void)parent.hear();
  });
  serve(accept_from(listener), kRequests, kSize, kSize);
  (void)client.hear();
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "client"}}) == 0; }));
  CHECK(where.value("tacho_dependency_calls_total") == kRequests);
  client.tell();
  client.finish();
}

TEST_CASE("requests and calls on a unix socket all of whose data is spliced count, but for the last call") {
  const Watched where;
  const Watched elsewhere;
  const Place place(Place::Kind::unix_stream);
  Child server = server_at(place, where.directory(), [](const UniqueFd& connection, Line&) {
    const Pipe pipe;
    for (int i = 0; i < kRequests; ++i) {
      splice_all(connection, pipe.in, kSize);
      splice_all(pipe.out, connection, kSize);
      send_once(connection, kSize);  // the rest of the reply
    }
  });
  (void)server.hear();
  Child caller(elsewhere.directory(), [&place, serving = server.pid()](Line& parent) {
    const UniqueFd socket = place.connect();
    const Pipe pipe;
    for (int i = 0; i < kRequests; ++i) {
      // What the server reads before the hook of its arrival has run was not told to have come.
      while (!all_asleep(serving, 1)) {
        std::this_thread::yield();
      }
      send_once(socket, kSize);
      splice_all(socket, pipe.in, 2 * kSize);
      std::array<char, 2 * kSize> answer{};
      must(::read(pipe.out.get(), answer.data(), answer.size()) > 0, "read");
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)caller.hear();
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.observations("tacho_request_duration_seconds") == kRequests);
  CHECK(elsewhere.value("tacho_dependency_calls_total") >= kRequests - 1);
  CHECK(elsewhere.value("tacho_dependency_calls_total") <= kRequests);
  caller.tell();
  caller.finish();
  server.tell();
  (void)server.hear();
  server.tell();
  server.finish();
}

TEST_CASE("an urgent byte that is skipped is no request, whatever the server sends then") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    serve(connection, 1, kSize, kSize);
    for (int i = 0; i < kRequests; ++i) {
      parent.tell();
      (void)parent.hear();
      pollfd urgent{.fd = connection.get(), .events = POLLPRI, .revents = 0};
      must(::poll(&urgent, 1, 10'000) == 1, "poll");
      // There is nothing to read but the mark, which that passes.
      std::array<char, kSize> none{};
      must(::recv(connection.get(), none.data(), none.size(), MSG_DONTWAIT) < 0, "recv");
      send_once(connection, kSize);
    }
  });
  const UniqueFd client = connect_to(server);
  ask(client, 1, kSize, kSize);
  for (int i = 0; i < kRequests; ++i) {
    (void)server.hear();
    must(::send(client.get(), "!", 1, MSG_OOB) == 1, "send");
    server.tell();
    receive_once(client, kSize);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 1);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  close_connection(server);
  finish(server);
}
