// Durations of requests agree with what client and server saw themselves.

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "kernel/support/child.h"
#include "kernel/support/place.h"
#include "kernel/support/running.h"
#include "kernel/support/server.h"
#include "kernel/support/span.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr int kRequests = 11;

/// What both sides write down.
struct Diary {
  Moment connected;
  std::array<Moment, kRequests> asked;
  std::array<Moment, kRequests> first_read;
  std::array<Moment, kRequests> last_read;
  std::array<Moment, kRequests> first_reply;
  std::array<Moment, kRequests> last_reply;
};

struct Delays {
  std::chrono::milliseconds before_read{};
  std::chrono::milliseconds between_reads{};
  std::chrono::milliseconds before_reply{};
  std::chrono::milliseconds within_reply{};
};

/// A server that takes its time: reads a request in two parts and answers in two.
void serve_slowly(const UniqueFd& connection, const Delays& delays, Diary& diary, Line& parent) {
  for (std::size_t i = 0; i < kRequests; ++i) {
    (void)parent.hear();  // it has been sent
    std::this_thread::sleep_for(delays.before_read);
    diary.first_read[i] = timed([&] { receive_once(connection, 5); });
    std::this_thread::sleep_for(delays.between_reads);
    diary.last_read[i] = timed([&] { receive_once(connection, 5); });
    std::this_thread::sleep_for(delays.before_reply);
    diary.first_reply[i] = timed([&] { send_once(connection, 10); });
    std::this_thread::sleep_for(delays.within_reply);
    diary.last_reply[i] = timed([&] { send_once(connection, 10); });
  }
}

/// Within the bounds, 5 % or 100 us a request: data may be delivered by a kernel thread, later than its send returned.
void check_sum(double seen, const Span& expected) {
  const double slack = std::max(expected.most * 0.05, kRequests * 100e-6);
  CAPTURE(seen, expected.least, expected.most);
  CHECK(seen >= expected.least - slack);
  CHECK(seen <= expected.most + slack);
}

/// What both sides of a connection at this place write down is what tacho reports.
void compare_times(const Place& place, const Delays& delays) {
  const Watched where;
  const Shared<Diary> diary;
  Child server = server_at(place, where.directory(), [&](const UniqueFd& connection, Line& parent) {
    serve_slowly(connection, delays, *diary, parent);
    receive_once(connection, 1);  // makes known what the last reply took
  });
  UniqueFd client;
  (void)server.hear();
  diary->connected = timed([&] { client = place.connect(); });
  for (Moment& asked : diary->asked) {
    asked = timed([&] { send_once(client, 10); });
    server.tell();
    receive_once(client, 20);
  }
  send_once(client, 1);
  (void)server.hear();
  REQUIRE(shared().wait_for([&] { return where.observations("tacho_request_reply_seconds") == kRequests; }));
  Span queue;
  Span service;
  Span duration;
  Span reply;
  for (std::size_t i = 0; i < kRequests; ++i) {
    queue += between(diary->asked[i], diary->first_read[i]);
    service += between(diary->last_read[i], diary->first_reply[i]);
    duration += between(diary->asked[i], diary->first_reply[i]);
    reply += between(diary->first_reply[i], diary->last_reply[i]);
  }
  check_sum(where.sum("tacho_request_queue_seconds"), queue);
  check_sum(where.sum("tacho_request_service_seconds"), service);
  check_sum(where.sum("tacho_request_duration_seconds"), duration);
  check_sum(where.sum("tacho_request_reply_seconds"), reply);
  if (place.kind() == Place::Kind::tcp) {
    check_sum(where.sum("tacho_connection_accept_wait_seconds"), between(diary->connected, diary->first_read[0]));
  }
  close_connection(server);
  finish(server);
}

}  // namespace

TEST_CASE("queue, service, duration and reply times are those that client and server measured") {
  for (const Place::Kind kind : {Place::Kind::tcp, Place::Kind::mptcp, Place::Kind::unix_stream}) {
    const Place place(kind);
    for (const Delays& delays :
         {Delays{20ms, 0ms, 0ms, 0ms}, Delays{0ms, 0ms, 20ms, 0ms}, Delays{4ms, 6ms, 9ms, 13ms}}) {
      if (place.available()) {
        CAPTURE(name_of(kind), delays.before_read.count(), delays.between_reads.count(), delays.before_reply.count());
        compare_times(place, delays);
      }
    }
  }
}

// TCP's clock is read at every send, and since Linux 6.19 at no receive.
TEST_CASE("what a server sends before it reads a request does not shorten that one's queue") {
  constexpr auto kBefore = 5ms;
  constexpr auto kBehind = 25ms;
  const Watched where;
  const Shared<Diary> diary;
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    for (std::size_t i = 0; i < kRequests; ++i) {
      (void)parent.hear();
      std::this_thread::sleep_for(kBefore);
      send_once(connection, 10);
      std::this_thread::sleep_for(kBehind);
      diary->first_read[i] = timed([&] { receive_once(connection, 10); });
      send_once(connection, 10);
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  Span queue;
  for (std::size_t i = 0; i < kRequests; ++i) {
    const Moment asked = timed([&] { send_once(client, 10); });
    server.tell();
    receive_once(client, 20);
    queue += between(asked, diary->first_read[i]);
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  check_sum(where.sum("tacho_request_queue_seconds"), queue);
  server.tell();
  server.finish();
}

TEST_CASE("known durations fall into the buckets that hold them") {
  const Watched where;
  const Shared<Diary> diary;
  const Delays delays{.before_read = 3ms, .between_reads = 0ms, .before_reply = 30ms, .within_reply = 0ms};
  Child server(where.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd connection = accept_from(listener);
    serve_slowly(connection, delays, *diary, parent);
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  for (Moment& asked : diary->asked) {
    asked = timed([&] { send_once(client, 10); });
    server.tell();
    receive_once(client, 20);
  }
  (void)server.hear();
  double shortest = 1e9;
  double longest = 0;
  for (std::size_t i = 0; i < kRequests; ++i) {
    const Span service = between(diary->last_read[i], diary->first_reply[i]);
    shortest = std::min(shortest, service.least);
    longest = std::max(longest, service.most);
  }
  const auto buckets = shared().page().buckets("tacho_request_service_seconds", {{"cgroup", where.path()}});
  double observed = 0;
  for (const auto& [bound, count] : buckets) {
    CAPTURE(bound, count, shortest, longest);
    // Four buckets an octave: one that holds a duration ends at most a fifth above it, and not below it.
    CHECK(bound >= shortest);
    CHECK(bound <= longest * 1.2);
    observed += count;
  }
  CHECK(observed == kRequests);
  server.tell();
  server.finish();
}

TEST_CASE("what waits in the client's own socket is none of a request's time") {
  const Watched where;
  Child server(where.directory(), [](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    serve(accept_from(listener), kRequests, 10, 20);
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(server.hear()));
  const auto cork = [&client](int on) {
    must(::setsockopt(client.get(), IPPROTO_TCP, TCP_CORK, &on, sizeof(on)) == 0, "TCP_CORK");
  };
  Span known;
  for (int i = 0; i < kRequests; ++i) {
    cork(1);
    send_once(client, 10);
    // The kernel holds it back for 200 ms at the most.
    std::this_thread::sleep_for(100ms);
    const Moment gone = timed([&] { cork(0); });
    known += between(gone, timed([&] { receive_once(client, 20); }));
  }
  (void)server.hear();
  CHECK(where.value("tacho_requests_total") == kRequests);
  CHECK(where.sum("tacho_request_duration_seconds") <= known.most);
  server.tell();
  server.finish();
}
