#include "kernel/shards.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>
#include <vector>

using tacho::kernel::Cpu;
using tacho::kernel::Cpus;
using tacho::kernel::shard_layout;
using tacho::kernel::ShardLayout;

namespace {

/// The first `online` of `end` CPUs. Each `sharers` of them have a cache, numbered as Intel does: the second thread of
/// each core comes behind all first ones.
Cpus machine(unsigned end, unsigned online, unsigned sharers = 1, unsigned threads = 1) {
  Cpus cpus{.end = end, .online = {}};
  const unsigned cores = online / threads;
  for (unsigned number = 0; number < online; ++number) {
    const unsigned core = number % cores;
    cpus.online.push_back({.number = number, .cache = core / (sharers / threads) * (sharers / threads), .core = core});
  }
  return cpus;
}

std::map<unsigned, std::set<unsigned>> caches_by_shard(const Cpus& cpus, const ShardLayout& layout) {
  std::map<unsigned, std::set<unsigned>> caches;
  for (const Cpu& cpu : cpus.online) {
    caches[layout.of_cpu.at(cpu.number)].insert(cpu.cache);
  }
  return caches;
}

std::vector<std::size_t> cpus_by_shard(const Cpus& cpus, const ShardLayout& layout) {
  std::vector<std::size_t> count(layout.shards());
  for (const Cpu& cpu : cpus.online) {
    ++count.at(layout.of_cpu.at(cpu.number));
  }
  return count;
}

}  // namespace

TEST_CASE("shards: as many as CPUs are online, 16 at most, plus one for every context") {
  struct Row {
    unsigned end;
    unsigned online;
    unsigned process_shards;
    bool exclusive;
  };
  constexpr Row rows[] = {{1, 1, 1, true},    {2, 2, 2, true},     {3, 3, 3, true},     {4, 2, 4, true},
                          {5, 2, 2, false},   {16, 16, 16, true},  {16, 8, 16, true},   {16, 4, 4, false},
                          {128, 4, 4, false}, {17, 16, 16, false}, {24, 24, 16, false}, {8192, 512, 16, false}};
  for (const auto& [end, online, process_shards, exclusive] : rows) {
    CAPTURE(end, online);
    const auto layout = shard_layout(machine(end, online));
    CHECK(layout.process_shards == process_shards);
    CHECK(layout.exclusive == exclusive);
    CHECK(layout.shards() == process_shards + 1);
  }
}

TEST_CASE("shards: a machine that reports no CPU is taken for one with one") {
  const auto layout = shard_layout({});
  CHECK(layout.process_shards == 1);
  CHECK(layout.exclusive);
}

TEST_CASE("shards: every CPU has one, and where they are exclusive none has another's") {
  for (unsigned end = 1; end <= 64; ++end) {
    for (unsigned online = 1; online <= end; ++online) {
      CAPTURE(end, online);
      const auto layout = shard_layout(machine(end, online));
      std::set<unsigned> used;
      for (unsigned cpu = 0; cpu < end; ++cpu) {
        const unsigned shard = layout.of_cpu.at(cpu);
        REQUIRE(shard >= 1);  // not the one for every context
        REQUIRE(shard < layout.shards());
        used.insert(shard);
      }
      CHECK((!layout.exclusive || used.size() == end));
      CHECK(used.size() == layout.process_shards);
    }
  }
}

TEST_CASE("shards: up to 16 CPUs that are online have one each, whatever numbers they have") {
  Cpus cpus{.end = 128, .online = {}};
  for (const unsigned number : {0U, 16U, 32U, 48U}) {
    cpus.online.push_back({.number = number, .cache = number, .core = number});
  }
  const auto layout = shard_layout(cpus);
  CHECK(std::ranges::max(cpus_by_shard(cpus, layout)) == 1);
}

TEST_CASE("shards: beyond 16 CPUs no line is shared between caches, as long as there are enough") {
  struct Row {
    unsigned online;
    unsigned sharers;
    unsigned threads;
  };
  // Two sockets; eight and twelve complexes; one cache for all.
  for (const auto& [online, sharers, threads] :
       {Row{64, 32, 2}, Row{128, 16, 2}, Row{96, 8, 2}, Row{24, 24, 2}, Row{32, 2, 2}}) {
    CAPTURE(online, sharers);
    const Cpus cpus = machine(online, online, sharers, threads);
    const auto layout = shard_layout(cpus);
    CHECK(layout.process_shards == 16);
    for (const auto& [shard, caches] : caches_by_shard(cpus, layout)) {
      CHECK(caches.size() == 1);
    }
    const auto count = cpus_by_shard(cpus, layout);
    CHECK(*std::max_element(count.begin() + 1, count.end()) <= (online + 15) / 16 + sharers / 2);
    CHECK(*std::min_element(count.begin() + 1, count.end()) >= 1);
  }
}

TEST_CASE("shards: threads of a core share one, where CPUs have to") {
  const Cpus cpus = machine(64, 64, 64, 2);
  const auto layout = shard_layout(cpus);
  for (unsigned core = 0; core < 32; ++core) {
    CHECK(layout.of_cpu.at(core) == layout.of_cpu.at(core + 32));
  }
}

TEST_CASE("shards: with more caches than shards neighbours share, and all are used alike") {
  const Cpus cpus = machine(128, 128, 4, 2);  // 32 caches
  const auto layout = shard_layout(cpus);
  const auto count = cpus_by_shard(cpus, layout);
  CHECK(std::all_of(count.begin() + 1, count.end(), [](std::size_t cpus_of_one) { return cpus_of_one == 8; }));
}
