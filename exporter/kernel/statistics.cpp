#include "kernel/statistics.h"

#include <bpf/bpf.h>

#include <numeric>

#include "kernel/features.h"
#include "kernel/map_keys.h"

namespace tacho::kernel {

std::vector<ProgramStatistics> program_statistics(const BpfObject& object) {
  std::vector<ProgramStatistics> all;
  for (const auto& [name, descriptor] : object.loaded_programs()) {
    bpf_prog_info info{};
    __u32 length = sizeof(info);
    if (bpf_obj_get_info_by_fd(descriptor, &info, &length) != 0) {
      continue;
    }
    const auto asked = object.verified().find(name);
    all.push_back({name, info.run_cnt, info.run_time_ns, info.recursion_misses,
                   asked != object.verified().end() ? asked->second : info.verified_insns, info.xlated_prog_len,
                   info.jited_prog_len});
  }
  return all;
}

Result<UniqueFd> enable_run_statistics() {
  UniqueFd descriptor(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!descriptor) {
    return fail_errno("cannot switch on BPF run statistics (needs CAP_SYS_ADMIN)");
  }
  return descriptor;
}

Result<MapFill> map_fill(const BpfObject& object, const std::string& map) {
  const int descriptor = object.map(map);
  bpf_map_info info{};
  __u32 length = sizeof(info);
  if (descriptor < 0 || bpf_obj_get_info_by_fd(descriptor, &info, &length) != 0) {
    return fail_errno("no information about map " + map);
  }
  if (info.type == BPF_MAP_TYPE_ARRAY_OF_MAPS) {
    return MapFill{map, info.max_entries, info.max_entries};
  }
  if (info.type != BPF_MAP_TYPE_HASH) {
    return fail("map " + map + " has no room that could run out");
  }
  const auto entries = for_each_key(descriptor, [](std::span<const std::byte>) {});
  if (!entries) {
    return std::unexpected(entries.error());
  }
  return MapFill{map, *entries, info.max_entries};
}

Result<std::vector<std::uint64_t>> lost_events(const BpfObject& object) {
  const bpf_map* map = bpf_object__find_map_by_name(object.get(), "lost_events");
  std::vector<std::uint64_t> sums(map == nullptr ? 0 : bpf_map__max_entries(map));
  std::vector<std::uint64_t> values(possible_cpus());
  for (std::uint32_t i = 0; i < sums.size(); ++i) {
    if (bpf_map_lookup_elem(bpf_map__fd(map), &i, values.data()) != 0) {
      return fail_errno("cannot read a per-CPU array");
    }
    sums[i] = std::accumulate(values.begin(), values.end(), std::uint64_t{0});
  }
  return sums;
}

}  // namespace tacho::kernel
