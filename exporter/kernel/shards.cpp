#include "kernel/shards.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace tacho::kernel {
namespace {

constexpr std::size_t kMaxShards = 16;
/// Of CPUs that may come online one day, as many as are there, or these.
constexpr std::size_t kLeastReserve = 2;

/// Online CPUs by the caches that they share; neighbours share a core.
std::vector<std::vector<Cpu>> by_cache(const Cpus& cpus) {
  std::map<unsigned, std::vector<Cpu>> groups;
  for (const Cpu& cpu : cpus.online) {
    groups[cpu.cache].push_back(cpu);
  }
  std::vector<std::vector<Cpu>> all;
  for (auto& [cache, group] : groups) {
    std::ranges::sort(group, {}, [](const Cpu& cpu) { return std::tuple(cpu.core, cpu.number); });
    all.push_back(std::move(group));
  }
  return all;
}

}  // namespace

ShardLayout shard_layout(const Cpus& cpus) {
  ShardLayout layout;
  const std::size_t online = std::max<std::size_t>(1, cpus.online.size());
  layout.exclusive = cpus.end <= std::min(kMaxShards, online + std::max(online, kLeastReserve));
  const std::size_t shards = layout.exclusive ? std::max(1U, cpus.end) : std::min(online, kMaxShards);
  layout.process_shards = static_cast<std::uint32_t>(shards);
  for (std::size_t cpu = 0; cpu < layout.of_cpu.size(); ++cpu) {
    layout.of_cpu[cpu] = static_cast<std::uint8_t>(1 + cpu % shards);
  }
  if (layout.exclusive) {
    return layout;
  }
  const auto groups = by_cache(cpus);
  std::size_t place = 0;  // of all CPUs
  for (std::size_t group = 0; group < groups.size(); ++group) {
    // Where there are enough, no two caches share a shard.
    const std::size_t first = group * shards / groups.size();
    const std::size_t own = (group + 1) * shards / groups.size() - first;
    for (std::size_t i = 0; i < groups[group].size(); ++i, ++place) {
      const std::size_t shard = online <= shards ? place : own == 0 ? first : first + i * own / groups[group].size();
      layout.of_cpu[groups[group][i].number % layout.of_cpu.size()] = static_cast<std::uint8_t>(1 + shard);
    }
  }
  return layout;
}

void set_shards(ObjectSetup& setup, const ShardLayout& layout, bool preemptible) {
  setup.set_constant("cpu_shards", layout.of_cpu);
  setup.set_constant("exclusive_shards", static_cast<std::uint32_t>(layout.exclusive && !preemptible));
}

}  // namespace tacho::kernel
