#include "targets/target_maps.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <atomic>

namespace tacho::targets {
namespace {

bool same(target_ref a, target_ref b) {
  return a.index == b.index && a.epoch == b.epoch;
}

template <class T>
void store(T& place, T value) {
  std::atomic_ref(place).store(value, std::memory_order_release);
}

}  // namespace

Result<TargetMaps> TargetMaps::open(const kernel::BpfObject& object, std::size_t indices) {
  TargetMaps maps;
  using kernel::MappedArray;
  auto rules = MappedArray::open(object.map("target_rules"), sizeof(target_rules), 1, MappedArray::Access::read_write);
  auto settings = MappedArray::open(object.map("target_settings"), sizeof(target_settings), indices,
                                    MappedArray::Access::read_write);
  if (!rules || !settings) {
    return std::unexpected((rules ? settings.error() : rules.error()).within("target maps"));
  }
  maps.rules_ = std::move(*rules);
  maps.settings_ = std::move(*settings);
  maps.cgroup_map_ = object.map("cgroup_targets");
  maps.process_map_ = object.map("process_targets");
  return maps;
}

void TargetMaps::set_idle_limit(std::uint64_t nanoseconds) {
  store(rules_.at<target_rules>(0).idle_limit_ns, static_cast<__u64>(nanoseconds));
}

void TargetMaps::set_self_top(std::uint64_t cgroup) {
  store(rules_.at<target_rules>(0).self_top, static_cast<__u64>(cgroup));
}

void TargetMaps::set_watch_executions(bool on) {
  store(rules_.at<target_rules>(0).watch_executions, static_cast<__u32>(on));
}

void TargetMaps::set_process_rules(bool on) {
  store(rules_.at<target_rules>(0).process_rules, static_cast<__u32>(on));
}

void TargetMaps::set_target(target_ref target, const TargetSettings& wanted) {
  auto& settings = settings_.at<target_settings>(target.index);
  const std::size_t count = std::min<std::size_t>(wanted.ports.size(), TACHO_PORTS_PER_TARGET);
  std::copy_n(wanted.ports.begin(), count, settings.ports);
  settings.ports_count = static_cast<__u32>(count);
  switch (wanted.http2) {
    case config::Http2::automatic:
      settings.http2 = TACHO_HTTP2_AUTO;
      break;
    case config::Http2::off:
      settings.http2 = TACHO_HTTP2_NEVER;
      break;
    case config::Http2::on:
      settings.http2 = TACHO_HTTP2_ALWAYS;
      break;
  }
  store(settings.epoch, target.epoch);
}

void TargetMaps::forget_process(std::uint32_t tgid) {
  bpf_map_delete_elem(process_map_, &tgid);
  processes_.erase(tgid);
}

template <class Key>
void TargetMaps::assign(int map, std::map<Key, target_ref>& mirror, const std::map<Key, target_ref>& wanted,
                        Assigned& result, bool& changed) {
  for (auto at = mirror.begin(); at != mirror.end();) {
    if (wanted.contains(at->first)) {
      ++at;
      continue;
    }
    bpf_map_delete_elem(map, &at->first);
    at = mirror.erase(at);
    changed = true;
  }
  for (const auto& [key, target] : wanted) {
    const auto at = mirror.find(key);
    if (at != mirror.end() && same(at->second, target)) {
      continue;
    }
    target_ref inherited{};
    const bool known = bpf_map_lookup_elem(map, &key, &inherited) == 0 && same(inherited, target);
    if (!known && bpf_map_update_elem(map, &key, &target, BPF_ANY) != 0) {
      ++result.refused;
      continue;
    }
    mirror[key] = target;
    result.grew |= !known;
    changed = true;
  }
}

void TargetMaps::rebuild_filter() {
  // Only ever adds: a bit too many costs a look-up, a bit cleared under a cgroup that the kernel has just let inherit
  // its parent's target would lose events.
  auto& rules = rules_.at<target_rules>(0);
  for (const auto& [id, target] : cgroups_) {
    const auto bit = id % TACHO_CGROUP_FILTER_BITS;
    std::atomic_ref(rules.cgroup_filter[bit / 64]).fetch_or(std::uint64_t{1} << (bit % 64));
  }
}

void TargetMaps::publish() {
  auto& rules = rules_.at<target_rules>(0);
  std::atomic_ref(rules.generation).fetch_add(1);
}

TargetMaps::Assigned TargetMaps::assign(const std::map<std::uint64_t, target_ref>& cgroups,
                                        const std::map<std::uint32_t, target_ref>& processes) {
  bool changed = false;
  Assigned result;
  assign(cgroup_map_, cgroups_, cgroups, result, changed);
  assign(process_map_, processes_, processes, result, changed);
  if (changed) {
    rebuild_filter();
    publish();
  }
  return result;
}

}  // namespace tacho::targets
