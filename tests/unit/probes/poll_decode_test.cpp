#include "probes/poll_decode.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "empty_row.h"
#include "lines.h"
#include "metrics/buckets.h"

namespace metrics = tacho::metrics;
using namespace tacho::probes;
using test::check_shape;
using test::lines;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kNow = 1'000'000'000'000;

PollSnapshot sum_of(const std::vector<poll_shard>& shards) {
  PollSnapshot snapshot;
  for (const poll_shard& shard : shards) {
    add_shard(snapshot, shard);
  }
  return snapshot;
}

std::map<std::string, std::string> page(const std::vector<poll_shard>& shards, const metrics::Gauges& gauges = {}) {
  const PollSnapshot snapshot = sum_of(shards);
  metrics::Row row;
  decode(snapshot, snapshot.times.total_ns(kNow), gauges, row);
  check_shape(poll_families(), row);
  return lines(poll_families(), row);
}

/// A wait that began `ago` before kNow and still lasts.
void begin_wait(poll_shard& shard, std::chrono::nanoseconds ago) {
  ++shard.begin;
  ++shard.waiters;
  shard.started_ns += static_cast<std::uint64_t>(kNow - ago.count());
  ++shard.end;
}

/// Ends, at kNow, a wait that began `ago`; maybe on another CPU than where it began.
void end_wait(poll_shard& shard, poll_outcome outcome, std::chrono::nanoseconds ago) {
  const auto ns = static_cast<std::uint64_t>(ago.count());
  ++shard.begin;
  ++shard.duration.slots[metrics::slot_of(ns)];
  shard.duration.sum_ns += ns;
  ++shard.completed[outcome];
  --shard.waiters;
  shard.started_ns -= static_cast<std::uint64_t>(kNow) - ns;
  ++shard.end;
}

}  // namespace

const tacho::probes::test::EmptyRow kPollRow("poll", [](tacho::metrics::Row& row) {
  tacho::probes::decode(tacho::probes::PollSnapshot{}, 0, tacho::metrics::Gauges{}, row);
});

TEST_CASE("a target that has not polled yet has no series of polls") {
  metrics::Row row;
  decode(sum_of({poll_shard{}}), 0, {}, row);
  CHECK(test::first_lines(poll_families(), row).empty());
}

TEST_CASE("calls are counted by outcome, their durations in one histogram") {
  poll_shard shard{};
  int milliseconds = 1;
  for (const poll_outcome outcome : {TACHO_POLL_READY, TACHO_POLL_TIMEOUT, TACHO_POLL_NONBLOCKING, TACHO_POLL_ERROR}) {
    begin_wait(shard, 1ms * milliseconds);
    end_wait(shard, outcome, 1ms * milliseconds);
    ++milliseconds;
  }
  const auto seen = page({shard});
  for (const char* outcome : {"ready", "timeout", "nonblocking", "error"}) {
    CHECK(seen.at("tacho_polls_total{outcome=\"" + std::string(outcome) + "\"}") == "1");
  }
  CHECK(seen.at("tacho_poll_duration_seconds_sum") == "0.01");
  CHECK(seen.at("tacho_poll_duration_seconds_count") == "4");
  CHECK(seen.at("tacho_idle_seconds_total") == "0.01");
  CHECK(seen.at("tacho_poll_waiters") == "0");
}

TEST_CASE("waits in progress count with the time they have lasted") {
  poll_shard shard{};
  begin_wait(shard, 3s);
  begin_wait(shard, 500ms);
  const auto seen = page({shard});
  CHECK(seen.at("tacho_poll_waiters") == "2");
  CHECK(seen.at("tacho_idle_seconds_total") == "3.5");
  CHECK(seen.at("tacho_poll_duration_seconds_count") == "0");
}

TEST_CASE("a wait that begins on one CPU and ends on another adds up") {
  poll_shard here{};
  poll_shard there{};
  begin_wait(here, 2s);
  begin_wait(here, 1s);
  end_wait(there, TACHO_POLL_READY, 2s);
  const auto seen = page({here, there});
  CHECK(seen.at("tacho_poll_waiters") == "1");
  CHECK(seen.at("tacho_idle_seconds_total") == "3");
}

TEST_CASE("an end that is seen before its beginning shows nothing impossible") {
  poll_shard shard{};
  end_wait(shard, TACHO_POLL_READY, 2s);  // the beginning is in a shard that was read earlier
  const PollSnapshot snapshot = sum_of({shard});
  CHECK(snapshot.times.waiting() == 0);
  CHECK(snapshot.times.total_ns(kNow) < static_cast<std::uint64_t>(kNow) + 2'000'000'000);
  poll_shard early{};
  begin_wait(early, -1us);  // a clock of another CPU that is ahead of ours
  CHECK(sum_of({early}).times.total_ns(kNow) == 0);
}

TEST_CASE("threads are the sum over shards, and never negative") {
  poll_shard here{};
  poll_shard there{};
  here.threads = 3;
  there.threads = static_cast<std::uint64_t>(-1);
  CHECK(page({here, there}).at("tacho_threads") == "2");
  CHECK(page({there}).at("tacho_threads") == "0");
}

TEST_CASE("the mean is that of the gauges") {
  CHECK(page({poll_shard{}}, {.poll_mean = 250e-6}).at("tacho_poll_duration_mean_seconds") == "0.00025");
}

TEST_CASE("a sample has all calls, those that did not wait, and those under way") {
  poll_shard here{};
  begin_wait(here, 2us);
  end_wait(here, TACHO_POLL_READY, 2us);
  begin_wait(here, 1us);
  end_wait(here, TACHO_POLL_NONBLOCKING, 1us);
  begin_wait(here, 5us);
  here.threads = 1;
  poll_shard there{};
  begin_wait(here, 3us);  // and went on to the other CPU
  end_wait(there, TACHO_POLL_TIMEOUT, 3us);
  there.threads = 2;
  const PollSample sample = sample_of(sum_of({here, there}), 77);
  CHECK(sample.counters.completed == 3);
  CHECK(sample.counters.nonblocking == 1);
  CHECK(sample.counters.started == 4);
  CHECK(sample.waiters == 1);
  CHECK(sample.counters.ns == 77);
  CHECK(sample.threads == 3);
}
