#include "probes/sched_decode.h"

#include <sys/syscall.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "empty_row.h"
#include "lines.h"

namespace metrics = tacho::metrics;
using namespace tacho::probes;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kNow = 1'000'000'000'000;

std::int64_t fixed_clock() {
  return kNow;
}

SchedTimes times_of(const std::vector<sched_shard>& shards) {
  std::vector<const sched_shard*> all;
  for (const sched_shard& shard : shards) {
    all.push_back(&shard);
  }
  return read_times(all, fixed_clock);
}

std::map<std::string, std::string> page(const std::vector<sched_shard>& shards, const CpuAllowance& allowance = {}) {
  SchedTotals totals;
  totals.raise(times_of(shards));
  metrics::Row row;
  decode({}, totals, allowance, row);
  test::check_shape(sched_families(), row);
  return test::lines(sched_families(), row);
}

std::string state(const std::string& name) {
  return "tacho_thread_state_seconds_total{state=\"" + name + "\"}";
}

/// As the programs do it, so long before kNow.
void come(sched_shard& shard, presence& place, std::chrono::nanoseconds ago) {
  ++shard.begin;
  ++place.threads;
  place.times_ns += static_cast<std::uint64_t>(kNow - ago.count());
  ++shard.end;
}

void leave(sched_shard& shard, presence& place, std::chrono::nanoseconds ago) {
  ++shard.begin;
  --place.threads;
  place.times_ns -= static_cast<std::uint64_t>(kNow - ago.count());
  ++shard.end;
}

}  // namespace

const tacho::probes::test::EmptyRow kSchedRow("sched", [](tacho::metrics::Row& row) {
  tacho::probes::decode({}, tacho::probes::SchedTotals{}, tacho::probes::CpuAllowance{}, row);
});

TEST_CASE("a target whose threads have done nothing yet has every series, at zero") {
  for (const auto& [series, value] : page({sched_shard{}})) {
    CAPTURE(series);
    CHECK(value == "0");
  }
}

TEST_CASE("a thread on its way through all states leaves its time in each") {
  sched_shard shard{};
  auto ago = 10s;
  for (std::size_t i = 0; i < TACHO_THREAD_STATES; ++i) {
    come(shard, shard.states[i], ago);
    ago -= std::chrono::seconds(i + 1);
    if (i + 1 < TACHO_THREAD_STATES) {
      leave(shard, shard.states[i], ago);
    }
  }
  // The last state began five seconds before the others would have been over, and is under way.
  const auto seen = page({shard});
  CHECK(seen.at(state("running")) == "1");
  CHECK(seen.at(state("runnable")) == "2");
  CHECK(seen.at(state("sleeping")) == "3");
  CHECK(seen.at(state("blocked")) == "4");
  CHECK(seen.at(state("iowait")) == "0");
}

TEST_CASE("a state that begins on one CPU and ends on another adds up, and one under way counts") {
  sched_shard here{};
  sched_shard there{};
  come(here, here.states[TACHO_THREAD_SLEEPING], 3s);
  leave(there, there.states[TACHO_THREAD_SLEEPING], 1s);
  come(there, there.states[TACHO_THREAD_RUNNABLE], 1s);
  const auto seen = page({here, there});
  CHECK(seen.at(state("sleeping")) == "2");
  CHECK(seen.at(state("runnable")) == "1");
}

TEST_CASE("time off CPU goes to the system call by its slot") {
  const auto slots = call_slots();
  sched_shard shard{};
  come(shard, shard.calls[slots.at(SYS_futex)], 2s);
  come(shard, shard.calls[slots.at(SYS_getppid)], 3s);
  come(shard, shard.calls[TACHO_OFFCPU_NONE], 5s);
  const auto seen = page({shard});
  CHECK(seen.at("tacho_offcpu_seconds_total{syscall=\"futex\"}") == "2");
  CHECK(seen.at("tacho_offcpu_seconds_total{syscall=\"other\"}") == "3");
  CHECK(seen.at("tacho_offcpu_seconds_total{syscall=\"none\"}") == "5");
  CHECK(seen.at("tacho_offcpu_seconds_total{syscall=\"read\"}") == "0");
}

TEST_CASE("every number of a system call has a slot, and no two calls share one but `other`") {
  const auto slots = call_slots();
  std::map<std::uint8_t, int> used;
  for (const std::uint8_t slot : slots) {
    REQUIRE(slot < TACHO_OFFCPU_CALLS);
    REQUIRE(slot != TACHO_OFFCPU_NONE);
    ++used[slot];
  }
  for (const auto& [slot, count] : used) {
    CAPTURE(static_cast<int>(slot));
    CHECK((slot == TACHO_OFFCPU_OTHER || count == 1));
  }
  CHECK(used.size() > 28);
  CHECK(slots.at(SYS_epoll_pwait) != slots.at(SYS_epoll_pwait2));
}

TEST_CASE("totals never fall, and a read out of step does not raise them") {
  SchedTotals totals;
  SchedTimes times;
  times.now_ns = kNow;
  times.states[TACHO_THREAD_RUNNING] = {.threads = 1, .times_ns = static_cast<std::uint64_t>(kNow) - 500};
  totals.raise(times);
  CHECK(totals.state_ns[TACHO_THREAD_RUNNING] == 500);
  times.states[TACHO_THREAD_RUNNING].times_ns += 100;
  totals.raise(times);
  CHECK(totals.state_ns[TACHO_THREAD_RUNNING] == 500);
  times.states[TACHO_THREAD_RUNNING].times_ns = 0;  // seen without its time: a total of the machine's uptime
  times.in_step = false;
  totals.raise(times);
  CHECK(totals.state_ns[TACHO_THREAD_RUNNING] == 500);
}

TEST_CASE("a change that does not come to an end is told") {
  sched_shard shard{};
  ++shard.begin;
  CHECK_FALSE(times_of({shard}).in_step);
  CHECK(times_of({sched_shard{}}).in_step);
  CHECK(times_of({sched_shard{}}).now_ns == kNow);
}

TEST_CASE("affinity is what threads of this period and the one before may use") {
  const auto period = static_cast<std::uint64_t>(kNow) >> TACHO_AFFINITY_SHIFT;
  sched_shard shard{};
  shard.affinity[0] = {.period = period, .cpus = {0b0011, 0, 0, 0}, .quota = 7};
  shard.affinity[1] = {.period = period - 1, .cpus = {0b0110, 0, 0, 1}, .quota = 9};
  ThreadLimits limits;
  add_affinity(limits, shard, kNow);
  CHECK(count(limits.cpus) == 4);
  CHECK(limits.quota == 9);
  shard.affinity[1].period = period - 2;
  limits = {};
  add_affinity(limits, shard, kNow);
  CHECK(count(limits.cpus) == 2);
  CHECK(limits.quota == 7);
}

TEST_CASE("limits and throttling are written as they are") {
  const auto seen = page({}, {.cores = 1.5, .throttled_ns = 2'500'000'000, .frozen = {}});
  CHECK(seen.at("tacho_cpu_limit_cores") == "1.5");
  CHECK(seen.at("tacho_cpu_throttled_seconds_total") == "2.5");
}
