#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "targets/plan.h"
#include "targets/world.h"

// Worlds as literals, and plans as lines of text that can be compared.

namespace tacho::targets::test {

inline constexpr std::uint32_t kNetwork = 4026531840;

/// A world of these cgroups; the root is always there. Ids count from 100 in the order given.
inline World world_of(const std::vector<std::string>& cgroups) {
  World world;
  world.cgroups["/"] = 1;
  std::uint64_t id = 100;
  for (const std::string& path : cgroups) {
    world.cgroups[path] = id++;
  }
  return world;
}

inline void add_process(World& world, std::uint32_t tgid, std::uint32_t parent, const std::string& executable) {
  world.processes[tgid] = {.tgid = tgid, .parent = parent, .executable = executable};
}

/// A listening TCP socket of a process in a cgroup, with a socket of its own unless `socket` names one.
inline Listener& listen(World& world, const std::string& cgroup, std::uint32_t tgid, std::uint16_t port,
                        std::uint64_t socket = 0) {
  Listener listener{};
  listener.cgroup = world.cgroups.contains(cgroup) ? world.cgroups.at(cgroup) : 999'999;
  listener.socket = socket != 0 ? socket : 1'000 + world.listeners.size();
  listener.tgid = tgid;
  listener.network = kNetwork;
  listener.kind = TACHO_LISTENER_TCP;
  listener.family = 2;
  listener.port = port;
  return world.listeners.emplace_back(listener);
}

/// "target=web cgroup=/a | /a /a/b | 12 13 | 80": labels, cgroups by path, processes, ports.
inline std::string brief(const DesiredTarget& target, const World& world) {
  std::map<std::uint64_t, std::string> paths;
  for (const auto& [path, id] : world.cgroups) {
    paths[id] = path;
  }
  std::string text;
  const auto add = [&text](const std::string& word) { text += (text.empty() || text.back() == ' ' ? "" : " ") + word; };
  for (const auto& [name, value] : target.labels) {
    std::string pair = name;
    pair += '=';
    pair += value;
    add(pair);
  }
  text += " |";
  for (const std::uint64_t id : target.cgroups) {
    add(paths.contains(id) ? paths[id] : "?" + std::to_string(id));
  }
  text += " |";
  for (const std::uint32_t tgid : target.processes) {
    add(std::to_string(tgid));
  }
  text += " |";
  for (const std::uint16_t port : target.settings.ports) {
    add(std::to_string(port));
  }
  return text;
}

using Lines = std::vector<std::string>;

inline Lines brief(const std::vector<DesiredTarget>& targets, const World& world) {
  Lines lines;
  for (const DesiredTarget& target : targets) {
    lines.push_back(brief(target, world));
  }
  return lines;
}

inline config::TargetRule cgroup_rule(const std::string& name, const std::string& glob) {
  config::TargetRule rule;
  rule.name = name;
  rule.cgroup = glob;
  return rule;
}

inline config::TargetRule process_rule(const std::string& name, std::optional<std::string> exe,
                                       std::optional<std::uint16_t> port) {
  config::TargetRule rule;
  rule.name = name;
  rule.process = config::ProcessSelector{.exe = std::move(exe), .port = port};
  return rule;
}

/// The plan of a configuration for a world, as text.
inline Lines plan(const config::Config& config, const World& world, const Earlier& earlier = {}) {
  return brief(TargetRules::compile(config).value().plan(world, earlier), world);
}

}  // namespace tacho::targets::test
