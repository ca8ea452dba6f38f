#include "probes/socket_decode.h"

#include <arpa/inet.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lines.h"
#include "metrics/buckets.h"

namespace metrics = tacho::metrics;
using namespace tacho::probes;
using test::check_shape;
using test::lines;
using namespace std::chrono_literals;

namespace {

/// The page of a target whose shards are these.
std::map<std::string, std::string> page(const std::vector<socket_shard>& shards,
                                        const std::vector<DependencySnapshot>& dependencies = {},
                                        const metrics::Window& window = metrics::Window(10s)) {
  SocketSnapshot snapshot;
  for (const socket_shard& shard : shards) {
    add_shard(snapshot, shard);
  }
  metrics::Row row;
  decode(snapshot, dependencies, window, row);
  check_shape(socket_families(), row);
  return lines(socket_families(), row);
}

void observe(duration_histogram& histogram, std::uint64_t ns, std::uint64_t times = 1) {
  histogram.slots[metrics::slot_of(ns)] += times;
  histogram.sum_ns += ns * times;
}

void observe(fine_histogram& histogram, std::uint64_t ns, std::uint64_t times = 1) {
  histogram.slots[metrics::fine_slot_of(ns)] += times;
  histogram.sum_ns += ns * times;
}

}  // namespace

TEST_CASE("a new target has every fixed series, at zero") {
  const auto zero = page({socket_shard{}});
  CHECK(zero.size() > 100);
  for (const auto& [series, value] : zero) {
    CAPTURE(series);
    CHECK(value == "0");
  }
}

TEST_CASE("moments are added over shards and written exactly") {
  socket_shard first{};
  first.moments[TACHO_SEND] = {.begin = 3,
                               .operations = 3,
                               .bytes = 3'000,
                               .intervals = 2,
                               .interval_ns = 2'000'000'001,
                               .square_low = 5,
                               .square_high = 1,
                               .idle_gaps = 1,
                               .idle_gap_ns = 7'000'000'000,
                               .end = 3};
  socket_shard second{};
  second.moments[TACHO_SEND].operations = 4;
  second.moments[TACHO_SEND].intervals = 4;
  second.moments[TACHO_SEND].interval_ns = -1;  // two CPUs came out of order
  second.moments[TACHO_RECEIVE].operations = 11;
  second.moments[TACHO_RECEIVE].bytes = 12;
  const auto seen = page({first, second});
  CHECK(seen.at("tacho_socket_operations_total{direction=\"send\"}") == "7");
  CHECK(seen.at("tacho_socket_bytes_total{direction=\"send\"}") == "3000");
  CHECK(seen.at("tacho_socket_intervals_total{direction=\"send\"}") == "6");
  CHECK(seen.at("tacho_socket_interval_seconds_total{direction=\"send\"}") == "2");
  CHECK(std::stod(seen.at("tacho_socket_interval_seconds_squared_total{direction=\"send\"}")) ==
        Approx(18.446744073709551616).epsilon(1e-12));
  CHECK(seen.at("tacho_socket_idle_gaps_total{direction=\"send\"}") == "1");
  CHECK(seen.at("tacho_socket_idle_gap_seconds_total{direction=\"send\"}") == "7");
  CHECK(seen.at("tacho_socket_operations_total{direction=\"receive\"}") == "11");
  CHECK(seen.at("tacho_socket_bytes_total{direction=\"receive\"}") == "12");
}

TEST_CASE("each histogram of a turn goes into its own family") {
  socket_shard shard{};
  observe(shard.queue, 1'000'000, 5);
  observe(shard.service, 2'000'000, 4);
  observe(shard.duration, 3'000'000, 3);
  observe(shard.reply, 4'000'000, 2);
  observe(shard.accept_wait, 5'000'000, 1);
  const auto seen = page({shard, shard});
  const auto count_and_sum = [&seen](const std::string& family) {
    return seen.at(family + "_count") + " " + seen.at(family + "_sum");
  };
  CHECK(count_and_sum("tacho_request_queue_seconds") == "10 0.01");
  CHECK(count_and_sum("tacho_request_service_seconds") == "8 0.016");
  CHECK(count_and_sum("tacho_request_duration_seconds") == "6 0.018");
  CHECK(count_and_sum("tacho_request_reply_seconds") == "4 0.016");
  CHECK(count_and_sum("tacho_connection_accept_wait_seconds") == "2 0.01");
  CHECK(seen.at("tacho_requests_total") == "6");
}

TEST_CASE("a turn is in flight from its first read until it is answered, given up or dismissed") {
  socket_shard shard{};
  shard.opened = 10;
  observe(shard.duration, 1'000, 4);
  shard.unanswered = 2;
  shard.dismissed = 1;
  shard.oneway = 1;  // among the dismissed ones
  const auto seen = page({shard});
  CHECK(seen.at("tacho_requests_in_flight") == "3");
  CHECK(seen.at("tacho_requests_unanswered_total") == "2");
  CHECK(seen.at("tacho_oneway_messages_total") == "1");
}

TEST_CASE("requests that came at once took no time to come") {
  socket_shard shard{};
  observe(shard.duration, 1'000, 10);
  observe(shard.receive, 2'000'000, 3);
  const auto seen = page({shard});
  CHECK(seen.at("tacho_request_receive_seconds_count") == "10");
  CHECK(seen.at("tacho_request_receive_seconds_sum") == "0.006");
}

TEST_CASE("messages without a reply and connections that multiplex are counted over shards") {
  socket_shard shard{};
  shard.oneway = 3;
  shard.multiplexed_connections = 2;
  const auto seen = page({shard, shard});
  CHECK(seen.at("tacho_oneway_messages_total") == "6");
  CHECK(seen.at("tacho_multiplexed_connections_total") == "4");
}

TEST_CASE("what is read a moment apart never gives a negative number") {
  socket_shard shard{};
  observe(shard.duration, 1'000, 4);  // ended before their beginnings were seen
  shard.connections_closed[0] = 1;
  const auto seen = page({shard});
  CHECK(seen.at("tacho_requests_in_flight") == "0");
  CHECK(seen.at("tacho_connections_active{role=\"server\"}") == "0");
}

TEST_CASE("connections are told apart by role") {
  socket_shard first{};
  first.connections_opened[0] = 5;
  first.connections_opened[1] = 3;
  socket_shard second{};  // closed on another CPU
  second.connections_closed[0] = 4;
  second.connections_closed[1] = 3;
  const auto seen = page({first, second});
  CHECK(seen.at("tacho_connections_total{role=\"server\"}") == "5");
  CHECK(seen.at("tacho_connections_active{role=\"server\"}") == "1");
  CHECK(seen.at("tacho_connections_total{role=\"client\"}") == "3");
  CHECK(seen.at("tacho_connections_active{role=\"client\"}") == "0");
}

TEST_CASE("handshakes have a counter of their own") {
  socket_shard shard{};
  shard.handshakes = 9;
  const auto seen = page({shard});
  CHECK(seen.at("tacho_handshakes_total") == "9");
  CHECK(seen.at("tacho_requests_total") == "0");
}

TEST_CASE("the gauges are those of the window") {
  metrics::Window window(10s);
  metrics::WindowSample sample;
  for (std::int64_t second = 0; second <= 10; ++second) {
    sample.time_ns = second * 1'000'000'000;
    window.push(sample);
    for (auto& moments : sample.direction) {  // 1000 operations, one a millisecond
      moments.operations += 1'000;
      moments.intervals += 1'000;
      moments.interval_ns += 1'000'000'000;
      moments.square_ns2 += metrics::Uint128{1'000} * 1'000'000 * 1'000'000;
    }
  }
  const auto seen = page({socket_shard{}}, {}, window);
  CHECK(std::stod(seen.at("tacho_observed_rps")) == Approx(1'000));
  CHECK(seen.at("tacho_inter_syscall_variance_seconds_squared{direction=\"send\"}") == "0");
  CHECK(seen.at("tacho_inter_syscall_cv2{direction=\"receive\"}") == "0");
}

TEST_CASE("calls to dependencies are told apart by peer") {
  DependencySnapshot database{.peer = "10.0.0.7:5432", .duration = {}};
  database.duration.slots[metrics::slot_of(2'000'000)] = 3;
  database.duration.sum_ns = 6'000'000;
  const DependencySnapshot silent{.peer = "other", .duration = {}};
  const auto seen = page({socket_shard{}}, {database, silent});
  CHECK(seen.at("tacho_dependency_calls_total{peer=\"10.0.0.7:5432\"}") == "3");
  CHECK(seen.at("tacho_dependency_duration_seconds_sum{peer=\"10.0.0.7:5432\"}") == "0.006");
  CHECK(seen.at("tacho_dependency_duration_seconds_count{peer=\"10.0.0.7:5432\"}") == "3");
  CHECK(seen.at("tacho_dependency_calls_total{peer=\"other\"}") == "0");
}
