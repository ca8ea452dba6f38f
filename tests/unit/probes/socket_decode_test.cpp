#include "probes/socket_decode.h"

#include <arpa/inet.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "empty_row.h"
#include "lines.h"
#include "metrics/buckets.h"
#include "metrics/unseen.h"

namespace metrics = tacho::metrics;
using namespace tacho::probes;
using test::check_shape;
using test::lines;
using namespace std::chrono_literals;

namespace {

/// The page of a target whose shards are these.
std::map<std::string, std::string> page(const std::vector<socket_shard>& shards,
                                        const std::vector<Dependency>& dependencies = {},
                                        const metrics::Gauges& gauges = {}) {
  SocketSnapshot snapshot;
  for (const socket_shard& shard : shards) {
    add_shard(snapshot, shard);
  }
  metrics::Row row;
  decode(snapshot, dependencies, gauges, row);
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

const tacho::probes::test::EmptyRow kSocketRow("socket", [](tacho::metrics::Row& row) {
  tacho::probes::decode(tacho::probes::SocketSnapshot{}, {}, tacho::metrics::Gauges{}, row);
});

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
  shard.oneway = 1;          // among the dismissed ones
  shard.unseen_replies = 1;  // as are these
  const auto seen = page({shard});
  CHECK(seen.at("tacho_requests_in_flight") == "3");
  CHECK(seen.at("tacho_requests_unanswered_total") == "2");
  CHECK(seen.at("tacho_oneway_messages_total") == "1");
  CHECK(seen.at("tacho_unseen_replies_total") == "1");
}

TEST_CASE("requests that came at once took no time to come") {
  socket_shard shard{};
  observe(shard.duration, 1'000, 10);
  observe(shard.receive, 2'000'000, 3);
  const auto seen = page({shard});
  CHECK(seen.at("tacho_request_receive_seconds_count") == "10");
  CHECK(seen.at("tacho_request_receive_seconds_sum") == "0.006");
}

TEST_CASE("what a missing hook does not show is absent, and not 0") {
  const auto without = [](std::string_view missing) {
    metrics::Row row;
    test::EmptyRow::all().at("socket")(row);
    metrics::Unseen(socket_families(), [missing](std::string_view hook) { return hook == missing; }).hide(row);
    return lines(socket_families(), row);
  };
  const auto no_arrivals = without("data_ready");
  CHECK_FALSE(no_arrivals.contains("tacho_request_queue_seconds_count"));
  CHECK_FALSE(no_arrivals.contains("tacho_request_receive_seconds_count"));
  CHECK(no_arrivals.contains("tacho_request_duration_seconds_count"));  // a condition
  CHECK(no_arrivals.contains("tacho_requests_total"));
  const auto no_ends = without("state_change");
  CHECK_FALSE(no_ends.contains("tacho_connections_active{role=\"server\"}"));
  CHECK_FALSE(no_ends.contains("tacho_requests_in_flight"));
  CHECK(no_ends.contains("tacho_requests_total"));
  const auto no_sends = without("send");
  CHECK_FALSE(no_sends.contains("tacho_requests_total"));
  CHECK_FALSE(no_sends.contains("tacho_socket_operations_total{direction=\"send\"}"));
  CHECK(no_sends.contains("tacho_socket_operations_total{direction=\"receive\"}"));
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

TEST_CASE("gauges stand under their names") {
  const metrics::Gauges gauges{.observed_rps = 1'000, .variance = {2, 3}, .cv2 = {4, 5}};
  const auto seen = page({socket_shard{}}, {}, gauges);
  CHECK(seen.at("tacho_observed_rps") == "1000");
  CHECK(seen.at("tacho_inter_syscall_variance_seconds_squared{direction=\"send\"}") == "2");
  CHECK(seen.at("tacho_inter_syscall_variance_seconds_squared{direction=\"receive\"}") == "3");
  CHECK(seen.at("tacho_inter_syscall_cv2{direction=\"send\"}") == "4");
  CHECK(seen.at("tacho_inter_syscall_cv2{direction=\"receive\"}") == "5");
}

TEST_CASE("a sample says what is exported, and what conditions are made of") {
  socket_shard here{};
  here.opened = 9;
  observe(here.duration, 1'000'000, 4);
  here.queue.sum_ns = 50;
  here.unanswered = 1;
  here.connections_opened[0] = 5;
  here.overlapped_turns = 2;
  here.oneway = 3;
  here.sampled_calls = 6;
  here.repeated_calls = 5;
  socket_shard there{};  // what began here and ended there
  there.dismissed = 2;
  there.connections_closed[0] = 4;
  there.queue.sum_ns = 7;
  there.sampled_turns = 8;
  there.repeated_turns = 7;
  there.calls_overlapped = 1;
  there.moments[1].operations = 11;
  SocketSample sample;
  add_shard(sample, there);
  add_shard(sample, here);
  Dependency database{.slot = 1, .peer = {}, .duration = {}};
  database.duration.slots[3] = 12;
  complete(sample, {database});
  CHECK(sample.in_flight == 2);
  CHECK(sample.server_connections == 1);
  CHECK(sample.dependencies.size() == 1);
  CHECK(sample.counters.queue_ns == 57);
  CHECK(sample.counters.direction[1].operations == 11);
  REQUIRE(sample.counters.turns);
  const auto& turns = *sample.counters.turns;
  CHECK(turns.requests == 4);
  CHECK(turns.overlapped == 2);
  CHECK(turns.sampled == 8);
  CHECK(turns.repeated == 7);
  CHECK(turns.one_way == 3);
  CHECK(turns.calls == 12);
  CHECK(turns.calls_overlapped == 1);
  CHECK(turns.calls_sampled == 6);
  CHECK(turns.calls_repeated == 5);
}

TEST_CASE("calls to dependencies are told apart by peer") {
  Dependency database{.peer = "10.0.0.7:5432", .duration = {}};
  database.duration.slots[metrics::slot_of(2'000'000)] = 3;
  database.duration.sum_ns = 6'000'000;
  const Dependency silent{.peer = "other", .duration = {}};
  const auto seen = page({socket_shard{}}, {database, silent});
  CHECK(seen.at("tacho_dependency_calls_total{peer=\"10.0.0.7:5432\"}") == "3");
  CHECK(seen.at("tacho_dependency_duration_seconds_sum{peer=\"10.0.0.7:5432\"}") == "0.006");
  CHECK(seen.at("tacho_dependency_duration_seconds_count{peer=\"10.0.0.7:5432\"}") == "3");
  CHECK(seen.at("tacho_dependency_calls_total{peer=\"other\"}") == "0");
}
