// Sums of intervals and of their squares agree with what user space measured around every call.

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "kernel/support/child.h"
#include "kernel/support/running.h"
#include "kernel/support/span.h"
#include "kernel/support/wire.h"

using tacho::UniqueFd;
using namespace tacho::kernel_test;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kSize = 16;
constexpr std::size_t kThreads = 4;
constexpr std::size_t kPerThread = 200;

/// Pauses of 0 to 700 us in an order that does not repeat soon (a linear congruential generator, Knuth's constants).
class Pauses {
 public:
  explicit Pauses(std::uint64_t seed) : state_(seed) {}
  void next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    std::this_thread::sleep_for(std::chrono::microseconds((state_ >> 33) % 700));
  }

 private:
  std::uint64_t state_;
};

struct Diary {
  std::array<Moment, 1 + kThreads * kPerThread + 1> moments;
};

/// Outside of the cgroup: accepts `connections` and reads each to its end.
Child sink_of(std::size_t connections) {
  return Child("", [connections](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    std::vector<std::jthread> readers;
    for (std::size_t i = 0; i < connections; ++i) {
      readers.emplace_back([socket = accept_from(listener)] {
        std::array<char, 4096> data{};
        while (::recv(socket.get(), data.data(), data.size(), 0) > 0) {
        }
      });
    }
  });
}

void pin_to_cpu(std::size_t number) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(number % static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)), &cpus);
  must(::sched_setaffinity(0, sizeof(cpus), &cpus) == 0, "sched_setaffinity");
}

void check_intervals(const Watched& where, const char* direction, const std::vector<Moment>& moments) {
  const auto value = [&](const char* name) { return where.value(name, {{"direction", direction}}); };
  const IntervalSums expected = intervals_of(moments);
  const auto operations = static_cast<double>(moments.size());
  const double sum = value("tacho_socket_interval_seconds_total");
  const double squares = value("tacho_socket_interval_seconds_squared_total");
  CHECK(value("tacho_socket_operations_total") == operations);
  CHECK(value("tacho_socket_intervals_total") == operations - 1);
  CAPTURE(sum, expected.sum.least, expected.sum.most);
  CHECK(sum >= expected.sum.least);
  CHECK(sum <= expected.sum.most);
  CAPTURE(squares, expected.squares.least, expected.squares.most);
  CHECK(squares >= expected.squares.least);
  CHECK(squares <= expected.squares.most);
  CHECK(squares * (operations - 1) >= sum * sum);  // Cauchy and Schwarz: no variance is negative
}

}  // namespace

TEST_CASE("intervals of one thread's sends are measured as it does itself") {
  const Watched where;
  const Shared<Diary> diary;
  constexpr std::size_t kSends = 300;
  Child sink = sink_of(1);
  Child sender(where.directory(), [&, port = static_cast<std::uint16_t>(sink.hear())](Line& parent) {
    const UniqueFd socket = connect_tcp(port);
    Pauses pauses(1);
    for (std::size_t i = 0; i < kSends; ++i) {
      diary->moments[i] = timed([&] { send_once(socket, kSize); });
      pauses.next();
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)sender.hear();
  check_intervals(where, "send", {diary->moments.begin(), diary->moments.begin() + kSends});
  sender.tell();
  sender.finish();
  sink.finish();
}

TEST_CASE("intervals of receives are those of the calls, not of the arrivals") {
  const Watched where;
  const Shared<Diary> diary;
  constexpr std::size_t kReceives = 300;
  Child receiver(where.directory(), [&](Line& parent) {
    const UniqueFd listener = listen_tcp();
    parent.tell(port_of(listener));
    const UniqueFd socket = accept_from(listener);
    (void)parent.hear();  // everything has been sent
    Pauses pauses(2);
    for (std::size_t i = 0; i < kReceives; ++i) {
      diary->moments[i] = timed([&] { receive_once(socket, kSize); });
      pauses.next();
    }
    parent.tell();
    (void)parent.hear();
  });
  const UniqueFd client = connect_tcp(static_cast<std::uint16_t>(receiver.hear()));
  for (std::size_t i = 0; i < kReceives; ++i) {
    send_once(client, kSize);
  }
  receiver.tell();
  (void)receiver.hear();
  check_intervals(where, "receive", {diary->moments.begin(), diary->moments.begin() + kReceives});
  receiver.tell();
  receiver.finish();
}

TEST_CASE("intervals of several threads on several CPUs are those of the merged stream") {
  const Watched where;
  const Shared<Diary> diary;
  Child sink = sink_of(kThreads);
  Child senders(where.directory(), [&, port = static_cast<std::uint16_t>(sink.hear())](Line& parent) {
    std::vector<UniqueFd> sockets;
    for (std::size_t i = 0; i < kThreads; ++i) {
      sockets.push_back(connect_tcp(port));
    }
    // First and last alone, so that the sum of the signed intervals is the time between the two.
    diary->moments.front() = timed([&] { send_once(sockets[0], kSize); });
    {
      std::vector<std::jthread> threads;
      for (std::size_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, thread] {
          pin_to_cpu(thread);
          Pauses pauses(thread);
          for (std::size_t i = 0; i < kPerThread; ++i) {
            diary->moments[1 + thread * kPerThread + i] = timed([&] { send_once(sockets[thread], kSize); });
            pauses.next();
          }
        });
      }
    }
    diary->moments.back() = timed([&] { send_once(sockets[0], kSize); });
    parent.tell();
    (void)parent.hear();
  });
  (void)senders.hear();
  check_intervals(where, "send", {diary->moments.begin(), diary->moments.end()});
  senders.tell();
  senders.finish();
  sink.finish();
}

TEST_CASE("a gap above the idle limit is idleness and no interval") {
  auto config = watching(playground() + "/*");
  config.idle_limit = 50ms;
  Running tacho(config);
  const Cgroup cgroup(playground() + "/" + unique_name());
  const Labels target{{"cgroup", cgroup.path()}};
  REQUIRE(tacho.wait_for([&] { return tacho.watches(target); }));
  const Shared<Diary> diary;
  Child sink = sink_of(1);
  Child sender(cgroup.directory(), [&, port = static_cast<std::uint16_t>(sink.hear())](Line& parent) {
    const UniqueFd socket = connect_tcp(port);
    for (std::size_t i = 0; i < 6; ++i) {
      diary->moments[i] = timed([&] { send_once(socket, kSize); });
      std::this_thread::sleep_for(i % 2 == 0 ? 120ms : 1ms);
    }
    parent.tell();
    (void)parent.hear();
  });
  (void)sender.hear();
  // Three long gaps; a short one is an interval unless the machine made it long.
  Span idle;
  Span busy;
  double gaps = 0;
  bool certain = true;
  for (std::size_t i = 0; i + 1 < 6; ++i) {
    const Span gap = between(diary->moments[i], diary->moments[i + 1]);
    certain = certain && (gap.least > 0.05 || gap.most < 0.05);
    gaps += gap.least > 0.05 ? 1 : 0;
    (gap.least > 0.05 ? idle : busy) += gap;
  }
  INFO("the machine was too slow to tell gaps from intervals");
  REQUIRE(certain);
  CHECK(gaps >= 3);
  const Page page = tacho.page();
  const auto value = [&](const char* name) {
    return page.value(name, {{"cgroup", cgroup.path()}, {"direction", "send"}});
  };
  CHECK(value("tacho_socket_operations_total") == 6);
  CHECK(value("tacho_socket_idle_gaps_total") == gaps);
  CHECK(value("tacho_socket_intervals_total") == 5 - gaps);
  CHECK(value("tacho_socket_idle_gap_seconds_total") >= idle.least);
  CHECK(value("tacho_socket_idle_gap_seconds_total") <= idle.most);
  CHECK(value("tacho_socket_interval_seconds_total") >= busy.least);
  CHECK(value("tacho_socket_interval_seconds_total") <= busy.most);
  sender.tell();
  sender.finish();
  sink.finish();
}
