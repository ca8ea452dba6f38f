// Requests whose threads are not what they seem.

#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <initializer_list>
#include <string>
#include <thread>

#include "kernel/support/cgroup.h"
#include "kernel/support/child.h"
#include "kernel/support/datagrams.h"
#include "kernel/support/known_work.h"
#include "kernel/support/ring.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kRequests = 11;
constexpr std::size_t kRequest = 10;
constexpr std::size_t kReply = 20;

/// Asks, and ends the server. All requests are of that mode, and their parts are those that the server knows.
Wrong ask_all(Child& server, const Watched& where, const Known& known, const char* mode,
              std::initializer_list<request_part> parts) {
  const UniqueFd client = connect_to(server);
  ask(client, kRequests, kRequest, kReply);
  (void)server.hear();
  CHECK(served(where, mode) == kRequests);
  Wrong wrong;
  for (const request_part part : parts) {
    compare(wrong, where, part, known[part], kRequests);
  }
  check_sums(where);
  close_connection(server);
  finish(server);
  return wrong;
}

}  // namespace

TEST_CASE("what a request is read in is its receipt, and what came before its last read is none of its parts") {
  check_agrees([] {
    const Watched where;
    const Shared<Known> known;
    Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line& /*parent*/) {
      const ThreadClock clock;
      become_known();
      for (int i = 0; i < kRequests; ++i) {
        receive_once(connection, kRequest / 2);
        const ThreadClock::Reading first = clock.read();
        nap(3ms);
        receive_once(connection, kRequest / 2);
        const double receive = (clock.read() - first).wall;
        const ThreadClock::Reading last = clock.read();
        nap(2ms);
        const double sleep = (clock.read() - last).off_cpu();
        send_once(connection, kReply);
        (*known)[TACHO_PART_RECEIVE] += {receive, receive};
        (*known)[TACHO_PART_SLEEP] += {sleep, sleep};
      }
    });
    return ask_all(server, where, *known, "same_thread", {TACHO_PART_RECEIVE, TACHO_PART_SLEEP});
  });
}

TEST_CASE("a thread may die with its request open: who answers it then was handed it") {
  check_agrees([] {
    const Watched where;
    const Shared<Known> known;
    Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line& /*parent*/) {
      const ThreadClock clock;
      become_known();
      for (int i = 0; i < kRequests; ++i) {
        // One after the other: there is nobody else to be taken for it.
        std::jthread([&connection] {
          become_known();
          receive_once(connection, kRequest);
        }).join();
        const ThreadClock::Reading began = clock.read();
        nap(2ms);
        const double sleep = (clock.read() - began).off_cpu();
        send_once(connection, kReply);
        (*known)[TACHO_PART_SLEEP] += {sleep, sleep};
      }
    });
    return ask_all(server, where, *known, "handed_over", {TACHO_PART_SLEEP});
  });
}

TEST_CASE("a thread may go to another target with its request open") {
  check_agrees([] {
    constexpr int kMoved = 4;
    const Watched from;
    const Watched to;
    const Shared<std::array<Known, 2>> known;
    Child server = server_that(from.directory(), [&](const UniqueFd& connection, Line& /*parent*/) {
      const ThreadClock clock;
      become_known();
      for (int i = 0; i < kRequests; ++i) {
        receive_once(connection, kRequest);
        if (i == kMoved) {
          move_to(to.directory(), ::getpid());
        }
        const ThreadClock::Reading began = clock.read();
        nap(2ms);
        const double sleep = (clock.read() - began).off_cpu();
        send_once(connection, kReply);
        if (i != kMoved) {
          known->at(i < kMoved ? 0 : 1)[TACHO_PART_SLEEP] += {sleep, sleep};
        }
      }
    });
    const UniqueFd client = connect_to(server);
    ask(client, kRequests, kRequest, kReply);
    (void)server.hear();
    CHECK(served(from, "same_thread") == kMoved);
    // With its socket it changed hands: it is the other's, none of whose threads has read it.
    CHECK(served(to, "same_thread") == kRequests - kMoved - 1);
    CHECK(served(to, "unknown") == 1);
    CHECK(from.value("tacho_requests_total") == kMoved);
    CHECK(to.value("tacho_requests_total") == kRequests - kMoved);
    Wrong wrong;
    compare(wrong, from, TACHO_PART_SLEEP, known->at(0)[TACHO_PART_SLEEP], kMoved);
    compare(wrong, to, TACHO_PART_SLEEP, known->at(1)[TACHO_PART_SLEEP], kRequests - kMoved - 1);
    check_sums(from);
    close_connection(server);
    finish(server);
    return wrong;
  });
}

TEST_CASE("of what workers of io_uring answer nothing is told but that it was served") {
  if (!Ring().available()) {
    WARN("skipped: this kernel lets nobody use io_uring");
    return;
  }
  const Watched where;
  Child server = server_that(where.directory(), [&](const UniqueFd& connection, Line& /*parent*/) {
    Ring ring;
    become_known();
    const std::string reply(kReply, 'r');
    for (int i = 0; i < kRequests; ++i) {
      receive_once(connection, kRequest);
      ring.send(connection, reply, Ring::By::worker);
    }
    // Its own thread is not taken for theirs.
    receive_once(connection, kRequest);
    nap(1ms);
    send_once(connection, kReply);
  });
  const UniqueFd client = connect_to(server);
  ask(client, kRequests + 1, kRequest, kReply);
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests + 1);
  CHECK(served(where, "unknown") == kRequests);
  CHECK(served(where, "same_thread") == 1);
  close_connection(server);
  finish(server);
}

TEST_CASE("of datagrams nothing is told but that they were served") {
  const Watched where;
  Child server = echo_server(where.directory(), 20'000, kRequests);
  const auto port = static_cast<std::uint16_t>(server.hear());
  const UniqueFd client = bound_socket(0);
  for (int i = 0; i < kRequests; ++i) {
    send_to(client, port);
    (void)spin_for(client);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(served(where, "unknown") == kRequests);
  for (std::size_t i = 0; i < TACHO_PARTS; ++i) {
    CHECK(part(where, static_cast<request_part>(i)) == 0);
  }
  server.tell();
  server.finish();
}

TEST_CASE("where threads are not seen, requests count and nothing is said of what they waited for") {
  const Cgroup cgroup(playground() + "/" + unique_name());
  auto config = watching(cgroup.path());
  config.probes.sched.enabled = false;
  Running tacho(config);
  Child server = server_that(cgroup.directory(), [](const UniqueFd& connection, Line& /*parent*/) {
    serve(connection, kRequests, kRequest, kReply);
  });
  const UniqueFd client = connect_to(server);
  ask(client, kRequests, kRequest, kReply);
  (void)server.hear();
  const Page page = tacho.page();
  CHECK(page.value("tacho_requests_total", {{"target", "t"}}) == kRequests);
  CHECK(page.count("tacho_probe_attached", {{"probe", "socket"}, {"hook", "anatomy"}}) == 0);
  CHECK(page.count("tacho_request_time_seconds_total", {{"target", "t"}}) == 0);
  CHECK(page.count("tacho_request_serving_total", {{"target", "t"}}) == 0);
  close_connection(server);
  finish(server);
}
