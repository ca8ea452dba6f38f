#include "targets/target_maps.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tacho::targets {
namespace {

bool same(target_ref a, target_ref b) {
  return a.index == b.index && a.epoch == b.epoch;
}

template <class T>
void store(T& place, T value) {
  std::atomic_ref(place).store(value, std::memory_order_release);
}

template <std::size_t N>
void mark(__u64 (&words)[N], std::uint64_t id) {
  const auto bit = id % TACHO_FILTER_BITS;
  std::atomic_ref(words[bit / 64]).fetch_or(__u64{1} << (bit % 64));
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
  auto cgroups = kernel::Map<std::uint64_t, target_ref>::open(object, "cgroup_targets");
  auto processes = kernel::Map<std::uint32_t, target_ref>::open(object, "process_targets");
  auto awaited = kernel::Map<awaited_cgroup, target_ref>::open(object, "awaited_cgroups");
  if (!cgroups || !processes || !awaited) {
    return std::unexpected(!cgroups ? cgroups.error() : !processes ? processes.error() : awaited.error());
  }
  maps.rules_ = std::move(*rules);
  maps.settings_ = std::move(*settings);
  maps.cgroup_map_ = std::move(*cgroups);
  maps.process_map_ = std::move(*processes);
  maps.awaited_map_ = std::move(*awaited);
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

void TargetMaps::set_client_rules(bool on) {
  store(rules_.at<target_rules>(0).client_rules, static_cast<__u32>(on));
}

void TargetMaps::set_process_rules(bool on) {
  store(rules_.at<target_rules>(0).process_rules, static_cast<__u32>(on));
}

void TargetMaps::set_target(target_ref target, const TargetSettings& wanted) {
  auto& settings = settings_.at<target_settings>(target.index);
  const target_settings before = settings;
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
  settings.exclude_node = static_cast<__u32>(wanted.exclude_clients == config::Clients::node);
  if (before.epoch != target.epoch && shed_.erase(target.index) > 0) {
    store(settings.shed, __u32{TACHO_SHED_NOTHING});
    publish_shed();
  }
  store(settings.epoch, target.epoch);
  const bool same = before.http2 == settings.http2 && before.exclude_node == settings.exclude_node &&
                    before.ports_count == settings.ports_count &&
                    std::equal(settings.ports, settings.ports + count, before.ports);
  if (before.epoch == target.epoch && !same) {
    publish();
  }
}

void TargetMaps::set_shed(target_ref target, tacho_shed level) {
  auto& settings = settings_.at<target_settings>(target.index);
  if (settings.epoch != target.epoch) {
    return;
  }
  if (level == TACHO_SHED_NOTHING) {
    shed_.erase(target.index);
  } else {
    shed_[target.index] = level;
  }
  store(settings.shed, static_cast<__u32>(level));
  publish_shed();
}

void TargetMaps::publish_shed() {
  tacho_shed highest = TACHO_SHED_NOTHING;
  for (const auto& [index, level] : shed_) {
    highest = std::max(highest, level);
  }
  store(rules_.at<target_rules>(0).shed, static_cast<__u32>(highest));
}

void TargetMaps::forget_process(std::uint32_t tgid) {
  process_map_.erase(tgid);
  processes_.erase(tgid);
}

template <class Key>
void TargetMaps::assign(const kernel::Map<Key, target_ref>& map, std::map<Key, target_ref>& mirror,
                        std::set<Key>& refused, const std::map<Key, target_ref>& wanted, Assigned& result,
                        bool& changed) {
  for (auto at = mirror.begin(); at != mirror.end();) {
    if (wanted.contains(at->first)) {
      ++at;
      continue;
    }
    map.erase(at->first);
    at = mirror.erase(at);
    changed = true;
  }
  for (const auto& [key, target] : wanted) {
    const auto at = mirror.find(key);
    if (at != mirror.end() && same(at->second, target)) {
      continue;
    }
    const auto inherited = map.find(key);
    const bool known = inherited && same(*inherited, target);
    if (!known && !map.put(key, target)) {
      result.why = std::strerror(errno);
      result.refused += refused.insert(key).second;
      continue;
    }
    refused.erase(key);
    mirror[key] = target;
    // What the kernel let inherit needs no new look-ups.
    result.grew |= !known;
    changed |= !known;
  }
}

void TargetMaps::mark_members() {
  auto& rules = rules_.at<target_rules>(0);
  for (target_filter& filter : rules.filters) {
    for (const auto& [id, target] : cgroups_) {
      mark(filter.cgroups, id);
    }
    for (const auto& [tgid, target] : processes_) {
      mark(filter.processes, tgid);
    }
  }
}

void TargetMaps::renew_filter() {
  auto& rules = rules_.at<target_rules>(0);
  const std::uint32_t other = 1 - (rules.filter & 1);
  target_filter& filter = rules.filters[other];
  for (auto* words : {&filter.cgroups, &filter.processes}) {
    for (__u64& word : *words) {
      store(word, __u64{0});
    }
  }
  // In this order: who is let in by the kernel from now on is marked by it in both. Twice, for a walk may leave out an
  // entry when another is deleted.
  for (int walk = 0; walk < 2; ++walk) {
    const auto cgroups = cgroup_map_.keys();
    const auto processes = process_map_.keys();
    if (!cgroups || !processes) {
      return;  // the next one, then
    }
    for (const std::uint64_t id : *cgroups) {
      mark(filter.cgroups, id);
    }
    for (const std::uint32_t tgid : *processes) {
      mark(filter.processes, tgid);
    }
  }
  mark_members();
  store(rules.filter, other);
}

void TargetMaps::await(const Awaited& wanted) {
  const auto key_of = [](const Awaited::key_type& place) {
    awaited_cgroup key{};
    key.parent = place.first;
    place.second.copy(key.name, sizeof(key.name) - 1);
    return key;
  };
  for (auto at = awaited_.begin(); at != awaited_.end();) {
    if (wanted.contains(at->first)) {
      ++at;
      continue;
    }
    awaited_map_.erase(key_of(at->first));
    at = awaited_.erase(at);
  }
  for (const auto& [place, target] : wanted) {
    const auto at = awaited_.find(place);
    if (place.second.size() >= sizeof(awaited_cgroup::name) || (at != awaited_.end() && same(at->second, target))) {
      continue;
    }
    if (awaited_map_.put(key_of(place), target)) {
      awaited_[place] = target;
    }
  }
}

void TargetMaps::begin_look() {
  older_cgroups_ = cgroup_map_.keys().value_or(std::vector<std::uint64_t>());
  older_processes_ = process_map_.keys().value_or(std::vector<std::uint32_t>());
}

void TargetMaps::end_look(const std::function<bool(std::uint32_t)>& is_process) {
  bool changed = false;
  for (const std::uint64_t id : std::exchange(older_cgroups_, {})) {
    changed |= !cgroups_.contains(id) && cgroup_map_.erase(id);
  }
  // A child that is still there may be known to the kernel alone.
  for (const std::uint32_t tgid : std::exchange(older_processes_, {})) {
    changed |= !processes_.contains(tgid) && !is_process(tgid) && process_map_.erase(tgid);
  }
  renew_filter();
  if (changed) {
    publish();
  }
}

void TargetMaps::publish() {
  auto& rules = rules_.at<target_rules>(0);
  std::atomic_ref(rules.generation).fetch_add(1);
}

std::set<std::uint32_t> TargetMaps::indices() const {
  std::set<std::uint32_t> all;
  for (const auto& [id, target] : cgroups_) {
    all.insert(target.index);
  }
  for (const auto& [tgid, target] : processes_) {
    all.insert(target.index);
  }
  return all;
}

TargetMaps::Assigned TargetMaps::assign(const std::map<std::uint64_t, target_ref>& cgroups,
                                        const std::map<std::uint32_t, target_ref>& processes) {
  bool changed = false;
  Assigned result;
  assign(cgroup_map_, cgroups_, refused_cgroups_, cgroups, result, changed);
  assign(process_map_, processes_, refused_processes_, processes, result, changed);
  if (changed) {
    mark_members();
    publish();
  }
  // Who has no member any more and gets some again is to know nothing of what was open before.
  for (const std::uint32_t index : std::exchange(inhabited_, indices())) {
    if (!inhabited_.contains(index)) {
      store(settings_.at<target_settings>(index).since, rules_.at<target_rules>(0).generation);
      deserted_.insert(index);
    }
  }
  // Listeners of who comes back may be as old as its members before: somebody else holds them (socket activation).
  for (const std::uint32_t index : inhabited_) {
    result.grew |= deserted_.erase(index) > 0;
  }
  return result;
}

}  // namespace tacho::targets
