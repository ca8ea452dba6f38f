#pragma once

#include <string>
#include <utility>

#include "targets/container_names.h"
#include "temp_tree.h"

namespace tacho::targets::test {

inline const std::string kUid = "0a1b2c3d-0000-4000-8000-00112233aabb";

inline std::string id_of(int number) {
  const std::string digits = std::to_string(number);
  return digits + std::string(64 - digits.size(), 'a');
}

inline CgroupIdentity container(const std::string& id, const std::string& runtime = "containerd",
                                const std::string& uid = kUid) {
  CgroupIdentity identity;
  identity.kind = CgroupIdentity::Kind::container;
  identity.place = CgroupIdentity::Place::runtime_root;
  identity.path = "/" + id;
  identity.container_id = id;
  identity.runtime = runtime;
  identity.pod_uid = uid;
  return identity;
}

/// The names that the files in a tree give.
inline ContainerNames names_in(
    const TempTree& tree, ContainerNames::IsInhabited is_inhabited = [](const std::string&) { return true; }) {
  return ContainerNames({.log = tree.path() + "/log",
                         .lib = tree.path() + "/lib",
                         .snap = tree.path() + "/snap",
                         .home = tree.path() + "/home"},
                        std::move(is_inhabited));
}

}  // namespace tacho::targets::test
