#include "probes/anatomy.h"

#include <sys/syscall.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <string>

#include "lines.h"
#include "metrics/buckets.h"

namespace metrics = tacho::metrics;
using namespace tacho::probes;
using namespace std::chrono_literals;

namespace {

auto page(const std::optional<Anatomy>& anatomy, std::uint64_t requests) {
  metrics::Row row;
  decode(anatomy, requests, row);
  test::check_shape(anatomy_families(), row);
  return test::first_lines(anatomy_families(), row);
}

std::uint8_t wait_for(request_part part) {
  return static_cast<std::uint8_t>(part - TACHO_FIRST_WAIT);
}

metrics::FineHistogram durations(std::uint64_t fast, std::uint64_t slow) {
  metrics::FineHistogram histogram;
  histogram.slots[metrics::fine_slot_of(1'000'000)] = fast;
  histogram.slots[metrics::fine_slot_of(100'000'000)] = slow;
  return histogram;
}

constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

TEST_CASE("nothing is said of requests whose threads are not known, nor before there is one") {
  CHECK(page({}, 100).empty());
  CHECK(page(Anatomy{}, 0).empty());
}

TEST_CASE("ordinary and slow requests are added up, slow ones told apart") {
  socket_shard shard{};
  shard.parts[0].ns[TACHO_PART_CPU] = 5;
  shard.parts[1].ns[TACHO_PART_CPU] = 7;
  shard.parts[1].ns[TACHO_PART_LOCK] = 1'000'000'000;
  shard.parts[0].requests[TACHO_SERVED_BY_READER] = 3;
  shard.parts[1].requests[TACHO_SERVED_INTERLEAVED] = 2;
  Anatomy anatomy;
  add_shard(anatomy, shard);
  add_shard(anatomy, shard);
  const auto seen = page(anatomy, 11);
  CHECK(seen.at("tacho_request_time_seconds_total{part=\"cpu\"}") == "0.000000024");
  CHECK(seen.at("tacho_request_time_seconds_total{part=\"lock\"}") == "2");
  CHECK_FALSE(seen.contains("tacho_request_time_seconds_total{part=\"disk\"}"));
  CHECK(seen.at("tacho_request_serving_total{mode=\"same_thread\"}") == "6");
  CHECK(seen.at("tacho_request_serving_total{mode=\"interleaved\"}") == "4");
  CHECK(seen.at("tacho_request_serving_total{mode=\"unknown\"}") == "1");
  CHECK(seen.at("tacho_slow_request_time_seconds_total{part=\"cpu\"}") == "0.000000014");
  CHECK(seen.at("tacho_slow_requests_total") == "4");
  CHECK_FALSE(seen.contains("tacho_request_handover_seconds_count"));
}

TEST_CASE("hand-over and slow requests appear with the first of them") {
  socket_shard shard{};
  shard.parts[0].requests[TACHO_SERVED_HANDED_OVER] = 1;
  shard.handover.slots[0] = 1;
  shard.handover.sum_ns = 900;
  Anatomy anatomy;
  add_shard(anatomy, shard);
  const auto seen = page(anatomy, 1);
  CHECK(seen.at("tacho_request_handover_seconds_count") == "1");
  CHECK_FALSE(seen.contains("tacho_slow_requests_total"));
  CHECK_FALSE(seen.contains("tacho_slow_request_time_seconds_total{part=\"cpu\"}"));
}

TEST_CASE("system calls wait for what they are made for") {
  const auto waits = call_waits();
  CHECK(waits.at(SYS_futex) == wait_for(TACHO_PART_LOCK));
  CHECK(waits.at(SYS_fsync) == wait_for(TACHO_PART_DISK));
  CHECK(waits.at(SYS_recvfrom) == wait_for(TACHO_PART_NETWORK));
  CHECK(waits.at(SYS_epoll_pwait) == wait_for(TACHO_PART_EVENT));
  CHECK(waits.at(SYS_clock_nanosleep) == wait_for(TACHO_PART_SLEEP));
  CHECK(waits.at(SYS_wait4) == wait_for(TACHO_PART_OTHER));
  CHECK(waits.at(SYS_read) == TACHO_WAITS_FOR_FILE);
  for (const std::uint8_t wait : waits) {
    CHECK((wait < TACHO_WAITS || wait == TACHO_WAITS_FOR_FILE));
  }
}

TEST_CASE("requests are slow above the p99 of the last minute") {
  SlowThreshold threshold;
  CHECK(threshold.update(0ns, durations(0, 0), 0) == 0);
  CHECK(threshold.update(0ns, durations(99, 0), kSecond) == 0);
  const std::uint64_t fast = threshold.update(0ns, durations(1000, 0), 2 * kSecond);
  CHECK(fast > 900'000);
  CHECK(fast < 1'100'000);
  const std::uint64_t slow = threshold.update(0ns, durations(1000, 50), 20 * kSecond);
  CHECK(slow > 90'000'000);
  CHECK(slow < 110'000'000);
  // What is older than a minute does not count any more.
  (void)threshold.update(0ns, durations(1000, 50), 31 * kSecond);
  (void)threshold.update(0ns, durations(1000, 50), 62 * kSecond);
  CHECK(threshold.update(0ns, durations(1000, 50), 93 * kSecond) == 0);
  CHECK(threshold.update(0ns, durations(2000, 50), 94 * kSecond) == fast);
}

TEST_CASE("a threshold that is configured is taken") {
  SlowThreshold threshold;
  CHECK(threshold.update(250ms, durations(0, 0), 0) == 250'000'000);
  CHECK(threshold.update(250ms, durations(1000, 50), kSecond) == 250'000'000);
}
