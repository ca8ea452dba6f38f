// What a hook has not told: the kernel skips a program that interrupts itself, and then nothing tells of the event.
// What is missed costs that event, not the connection's life.

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "config/load.h"
#include "kernel/support/child.h"
#include "kernel/support/missed.h"
#include "kernel/support/place.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kRequests = 23;
constexpr auto kPause = 700ms;

/// Answers `kRequests` requests of ten bytes on one connection.
void serve_all(const UniqueFd& connection, Line& parent) {
  serve(connection, kRequests, 10, 10);
  parent.tell();
}

/// While it lives, a program of the shared tacho is not run.
std::unique_ptr<Missed> miss(const std::string& program) {
  (void)shared();
  auto missed = std::make_unique<Missed>(program);
  if (!missed->any()) {
    WARN("skipped: no hook is a tracepoint here, so none can be taken away and come back");
    return nullptr;
  }
  return missed;
}

}  // namespace

TEST_CASE("a connection whose beginning was missed counts all the same") {
  const Watched where;
  Child server = server_that(where.directory(), serve_all);
  const auto port = static_cast<std::uint16_t>(server.hear());
  UniqueFd client;
  {
    const auto missed = miss("socket_state_change");
    if (!missed) {
      return;
    }
    client = connect_tcp(port);
  }
  ask(client, kRequests, 10, 10);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.observations("tacho_request_duration_seconds") == kRequests);
  CHECK(where.value("tacho_connections_total", {{"role", "server"}}) == 1);
  CHECK(where.value("tacho_connections_active", {{"role", "server"}}) == 1);
  (void)server.hear();
  close_connection(server);
  client.reset();
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  finish(server);
}

TEST_CASE("a server whose beginning was missed is found with the next look at everything") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  const std::filesystem::path file = std::filesystem::temp_directory_path() / (unique_name() + ".yaml");
  std::ofstream(file) << "targets: [{name: t, cgroup: \"" << cgroup.path()
                      << "\"}]\nprobes: {poll: {enabled: false}}\n";
  Running tacho(tacho::config::load_file(file).config, file);
  REQUIRE(tacho.wait_for([&] { return tacho.watches({{"target", "t"}}); }));
  auto missed = miss("socket_state_change");
  if (!missed) {
    return;
  }
  Server server(cgroup.directory());
  missed.reset();
  // Reading the configuration again brings such a look; else one comes every half a minute.
  REQUIRE(tacho.app().reload());
  CHECK(tacho.wait_for([&] {
    const auto requests = [&] { return tacho.page().value("tacho_requests_total", {{"target", "t"}}); };
    const double before = requests();
    server.ask(kRequests);
    return requests() == before + kRequests;
  }));
  server.finish();
  std::filesystem::remove(file);
}

TEST_CASE("a call's connection whose beginning was missed counts all the same") {
  const Watched where;
  const UniqueFd listener = listen_tcp();
  const auto port = port_of(listener);
  Child client(where.directory(), [port](Line& parent) {
    (void)parent.hear();
    const UniqueFd connection = connect_tcp(port);
    parent.tell();
    (void)parent.hear();
    ask(connection, kRequests, 10, 10);
    parent.tell();
    (void)parent.hear();
  });
  UniqueFd connection;
  {
    const auto missed = miss("socket_state_change");
    if (!missed) {
      return;
    }
    client.tell();
    connection = accept_from(listener);
    (void)client.hear();
  }
  client.tell();
  serve(connection, kRequests, 10, 10);
  (void)client.hear();
  const std::string peer = "127.0.0.1:" + std::to_string(port);
  CHECK(where.value("tacho_dependency_calls_total", {{"peer", peer}}) == kRequests);
  CHECK(where.value("tacho_requests_total") == 0);
  CHECK(where.value("tacho_connections_total", {{"role", "client"}}) == 1);
  client.tell();
  client.finish();
}

TEST_CASE("a connection's end that was missed is found as long as its socket is there") {
  const Watched where;
  Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
    serve(connection, 1, 10, 10);
    parent.tell();
    (void)parent.hear();
    char rest = 0;
    must(::recv(connection.get(), &rest, 1, 0) == 0, "the end of the stream");
  });
  UniqueFd client = connect_to(server);
  ask(client, 1, 10, 10);
  (void)server.hear();
  {
    const auto missed = miss("socket_state_change");
    if (!missed) {
      return;
    }
    // Both sides have said goodbye, and the server's process still holds the socket.
    must(::shutdown(client.get(), SHUT_WR) == 0, "shutdown");
    server.tell();
    (void)server.hear();
    const linger abort{.l_onoff = 1, .l_linger = 0};
    must(::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof(abort)) == 0, "SO_LINGER");
    client.reset();
  }
  CHECK(shared().wait_for([&] { return where.value("tacho_connections_active", {{"role", "server"}}) == 0; }));
  CHECK(where.value("tacho_requests_total") == 1);
  CHECK(where.value("tacho_requests_unanswered_total") == 0);
  close_connection(server);
  finish(server);
}

namespace {

/// Three requests with pauses between; of the second one's arrival nothing is told.
void check_missed_arrival(const Watched& where, const UniqueFd& client, const Child& server) {
  ask(client, 1, 10, 10);
  std::this_thread::sleep_for(kPause);
  {
    const auto missed = miss("socket_data_ready");
    if (!missed) {
      return;
    }
    send_once(client, 10);
    receive_once(client, 10);
  }
  std::this_thread::sleep_for(kPause);
  ask(client, 1, 10, 10);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == 3);
  CHECK(where.value("tacho_requests_in_flight") == 0);
  // Neither pause is in anybody's time.
  const double pause = std::chrono::duration<double>(kPause).count();
  CHECK(where.sum("tacho_request_duration_seconds") < pause / 2);
  CHECK(where.sum("tacho_request_queue_seconds") < pause / 2);
  CHECK(where.value("tacho_oneway_messages_total") == 0);
}

}  // namespace

TEST_CASE("a request whose arrival was missed has no pause in its duration, nor has the next one") {
  for (const Place::Kind kind : {Place::Kind::tcp, Place::Kind::unix_stream}) {
    CAPTURE(name_of(kind));
    const Watched where;
    const Place place(kind);
    Child server =
        server_at(place, where.directory(), [](const UniqueFd& connection, Line&) { serve(connection, 3, 10, 10); });
    const UniqueFd client = connect_to(server, place);
    check_missed_arrival(where, client, server);
    close_connection(server);
    finish(server);
  }
}

TEST_CASE("a receive or a send that was missed costs no request, and the next ones count") {
  for (const bool receive : {true, false}) {
    CAPTURE(receive);
    const Watched where;
    Child server = server_that(where.directory(), [](const UniqueFd& connection, Line& parent) {
      for (int i = 0; i < kRequests; ++i) {
        serve(connection, 1, 10, 10);
        parent.tell();
      }
    });
    const UniqueFd client = connect_to(server);
    for (int i = 0; i < kRequests; ++i) {
      std::unique_ptr<Missed> missed;
      if (i == kRequests / 2) {
        missed = miss(receive ? "socket_receive" : "socket_send");
        if (!missed) {
          return;
        }
      }
      ask(client, 1, 10, 10);
      (void)server.hear();
    }
    (void)server.hear();
    // Positions in the stream tell that something was read, and that the turn of the missed send was answered.
    CHECK(where.value("tacho_requests_total") == kRequests);
    CHECK(where.value("tacho_requests_in_flight") == 0);
    CHECK(where.value("tacho_requests_unanswered_total") == 0);
    close_connection(server);
    finish(server);
  }
}

TEST_CASE("a reply that was missed leaves nothing in flight when its connection ends") {
  for (const int reads_behind : {0, 2}) {
    CAPTURE(reads_behind);
    const Watched where;
    Child server = server_that(where.directory(), [reads_behind](const UniqueFd& connection, Line&) {
      serve(connection, 1 + reads_behind, 10, 10);
    });
    const UniqueFd client = connect_to(server);
    {
      const auto missed = miss("socket_send");
      if (!missed) {
        return;
      }
      ask(client, 1 + reads_behind, 10, 10);
      (void)server.hear();
    }
    CHECK(where.value("tacho_requests_in_flight") > 0);
    close_connection(server);
    // When the client has acknowledged the goodbye.
    CHECK(shared().wait_for([&] { return where.value("tacho_requests_in_flight") == 0; }));
    CHECK(where.value("tacho_requests_unanswered_total") == 0);
    CHECK(where.value("tacho_unseen_replies_total") == (reads_behind > 0 ? 2 : 1));
    finish(server);
  }
}
