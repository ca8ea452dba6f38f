#include "probes/bracket.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "probes/histogram_decode.h"
#include "probes/poll_decode.h"
#include "probes/socket_decode.h"

using tacho::probes::read_bracketed;

namespace {

struct Counters {
  std::uint64_t begin = 0;
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t end = 0;
};

template <class T>
void store(T& place, T value) {
  __atomic_store_n(&place, value, __ATOMIC_RELEASE);
}

/// As the programs do it: every field on its own, in this order.
void count_interval(socket_moments& m, std::int64_t interval) {
  store(m.begin, m.begin + 1);
  store(m.operations, m.operations + 1);
  store(m.bytes, m.bytes + 100);
  store(m.intervals, m.intervals + 1);
  store(m.interval_ns, m.interval_ns + interval);
  const auto square = static_cast<unsigned long long>(interval * interval);
  const auto low = m.square_low + square;
  store(m.square_high, m.square_high + (low < square ? 1 : 0));
  store(m.square_low, low);
  store(m.end, m.end + 1);
}

using Clock = std::chrono::steady_clock;

/// A mean.
std::chrono::nanoseconds time_of_reading(const socket_moments& moments) {
  constexpr int kReadings = 1000;
  const auto begin = Clock::now();
  std::uint64_t operations = 0;
  for (int i = 0; i < kReadings; ++i) {
    operations += tacho::probes::read_moments(moments).operations;
  }
  const auto end = Clock::now();
  REQUIRE(operations == 0);
  return (end - begin) / kReadings;
}

}  // namespace

TEST_CASE("a read that nothing disturbs is done once") {
  const Counters counters{.begin = 7, .a = 1, .b = 2, .end = 7};
  int copies = 0;
  const auto sum = read_bracketed(counters.begin, counters.end, [&] {
    ++copies;
    return counters.a + counters.b;
  });
  CHECK(sum == 3);
  CHECK(copies == 1);
  bool in_step = true;
  read_bracketed(counters.begin, counters.end, [] { return 0; }, &in_step);
  CHECK(in_step);
}

TEST_CASE("a read into which a change falls is done again") {
  Counters counters;
  int copies = 0;
  const auto copy = read_bracketed(counters.begin, counters.end, [&] {
    Counters seen = counters;
    if (++copies == 1) {  // between the reading of a and that of b
      counters = {.begin = 1, .a = 1, .b = 1, .end = 1};
      seen.b = counters.b;
    }
    return seen;
  });
  CHECK(copies == 2);
  CHECK(copy.a == copy.b);
}

TEST_CASE("a read that begins in the middle of a change is done again") {
  Counters counters{.begin = 1, .a = 1, .b = 0, .end = 0};
  int copies = 0;
  const auto copy = read_bracketed(counters.begin, counters.end, [&] {
    const Counters seen = counters;
    if (++copies == 3) {
      counters.b = 1;
      counters.end = 1;
    }
    return seen;
  });
  CHECK(copies == 4);
  CHECK(copy.b == 1);
}

TEST_CASE("a writer that never comes to an end is not waited for for ever") {
  const Counters stuck{.begin = 5, .a = 9, .b = 8, .end = 4};
  int copies = 0;
  const auto copy = read_bracketed(stuck.begin, stuck.end, [&] {
    ++copies;
    return stuck;
  });
  CHECK(copies == tacho::probes::kBracketTries);
  CHECK(copy.a == 9);
  bool in_step = true;
  read_bracketed(stuck.begin, stuck.end, [] { return 0; }, &in_step);
  CHECK_FALSE(in_step);
}

TEST_CASE("moments that another thread changes all the time are at most one event out of step") {
  socket_moments moments{};
  std::atomic<bool> stop = false;
  // 3 s: its square, 9e18, carries into the high half every other time.
  constexpr std::int64_t kInterval = 3'000'000'000;
  // Hooks are tens of nanoseconds apart at the very least, which is what a reading takes: longer if it is sanitized.
  const std::chrono::nanoseconds reading = time_of_reading(moments);
  std::jthread writer([&] {
    for (std::uint64_t i = 0; !stop; ++i) {
      count_interval(moments, kInterval);
      for (const auto begin = Clock::now(); Clock::now() - begin < reading * (8 + i % 16) / 8;) {
      }
    }
  });
  std::uint64_t last = 0;
  std::uint64_t distinct = 0;
  while (distinct < 2'000) {
    const auto seen = tacho::probes::read_moments(moments);
    const auto intervals = static_cast<std::int64_t>(seen.intervals);
    // One comparison a read, so that the checks do not slow the reading down.
    const bool in_step = std::abs(seen.interval_ns - intervals * kInterval) <= kInterval &&
                         seen.operations - seen.intervals <= 1 && seen.bytes / 100 - seen.intervals <= 1;
    const auto expected = tacho::metrics::Uint128{seen.intervals} * kInterval * kInterval;
    const auto off = seen.square_ns2 > expected ? seen.square_ns2 - expected : expected - seen.square_ns2;
    const bool in_range = off <= (tacho::metrics::Uint128{1} << 64) + kInterval * tacho::metrics::Uint128{kInterval};
    if (!in_step || !in_range) {
      CAPTURE(seen.operations, seen.intervals, seen.interval_ns);
      CHECK(in_step);
      CHECK(in_range);
    }
    if (seen.operations < last) {
      CHECK(seen.operations >= last);
    }
    distinct += seen.operations != last ? 1 : 0;
    last = seen.operations;
  }
  stop = true;
  writer.join();
  const auto rest = tacho::probes::read_moments(moments);
  CHECK(rest.operations == rest.intervals);
  CHECK(rest.interval_ns == static_cast<std::int64_t>(rest.intervals) * kInterval);
  CHECK(rest.square_ns2 == tacho::metrics::Uint128{rest.intervals} * kInterval * kInterval);
}

TEST_CASE("waits that another thread begins and ends never look longer than they can have been") {
  poll_shard shard{};
  std::atomic<bool> stop = false;
  constexpr std::uint64_t kStarted = 1'000'000'000'000;
  constexpr std::int64_t kNow = 1'000'000'001'000;  // a wait has always lasted 1 us
  std::jthread writer([&] {
    while (!stop) {
      store(shard.begin, shard.begin + 1);
      store(shard.waiters, shard.waiters + 1);
      store(shard.started_ns, shard.started_ns + kStarted);
      store(shard.end, shard.end + 1);
      store(shard.begin, shard.begin + 1);
      store(shard.duration.sum_ns, shard.duration.sum_ns + 1'000);
      store(shard.waiters, shard.waiters - 1);
      store(shard.started_ns, shard.started_ns - kStarted);
      store(shard.end, shard.end + 1);
      for (int pause = 0; pause < 64; ++pause) {
        __asm__ volatile("");
      }
    }
  });
  // A read that was caught in the middle 32 times says so; all others are exact.
  std::uint64_t in_step = 0;
  for (int i = 0; in_step < 20'000; ++i) {
    tacho::probes::PollTimes times;
    tacho::probes::add_shard(times, shard);
    if (!times.in_step) {
      continue;
    }
    ++in_step;
    const bool exact = times.waiters <= 1 && times.total_ns(kNow) == times.completed_ns + 1'000 * times.waiters;
    if (!exact) {
      CAPTURE(i, times.waiters, times.started_ns);
      CHECK(exact);
    }
  }
  stop = true;
  writer.join();
  tacho::probes::PollTimes rest;
  tacho::probes::add_shard(rest, shard);
  CHECK(rest.in_step);
  CHECK(rest.waiting() == 0);
  CHECK(rest.total_ns(kNow) == shard.duration.sum_ns);
}

TEST_CASE("one shard out of step puts the sum over all out of step") {
  poll_shard stuck{};
  stuck.begin = 1;
  tacho::probes::PollTimes times;
  tacho::probes::add_shard(times, stuck);
  CHECK_FALSE(times.in_step);
  tacho::probes::add_shard(times, poll_shard{});
  CHECK_FALSE(times.in_step);
}

TEST_CASE("a histogram is added slot by slot") {
  duration_histogram shard{};
  for (std::size_t i = 0; i < TACHO_HISTOGRAM_SLOTS; ++i) {
    shard.slots[i] = i + 1;
  }
  shard.sum_ns = 12'345;
  tacho::metrics::Histogram sum;
  tacho::probes::add_histogram(sum, shard);
  tacho::probes::add_histogram(sum, shard);
  CHECK(sum.sum_ns == 24'690);
  for (std::size_t i = 0; i < TACHO_HISTOGRAM_SLOTS; ++i) {
    CAPTURE(i);
    CHECK(sum.slots[i] == 2 * (i + 1));
  }
}
