#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "targets/plan.h"

// Shared by the parts of a plan: plan.cpp makes targets of rules, plan_listeners.cpp of listeners.

namespace tacho::targets {

/// The target that each cgroup belongs to.
struct TargetRules::CgroupOwners {
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::map<std::string, std::size_t> target;         // path → index into the targets, kNone
  std::map<std::uint64_t, const std::string*> path;  // id → path
  std::vector<std::size_t> rule;                     // of each target

  [[nodiscard]] std::size_t of(const std::string& cgroup) const {
    const auto found = target.find(cgroup);
    return found == target.end() ? kNone : found->second;
  }
};

/// The name of the container that a cgroup is; nullptr for cgroups inside one and all others.
inline const ContainerName* container_at(const CgroupIdentity& identity, const std::string& path, const World& world) {
  if (identity.kind != CgroupIdentity::Kind::container || identity.path != path) {
    return nullptr;
  }
  const auto known = world.names.find(identity.path);
  return known == world.names.end() ? nullptr : &known->second;
}

inline void describe(DesiredTarget& target, const ContainerName& name) {
  add_container(target.labels, name, target.identity);
  target.container = name;
}

}  // namespace tacho::targets
