#include "targets/container_names.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <string_view>
#include <tuple>
#include <utility>

#include "targets/kubelet_links.h"

namespace tacho::targets {

std::vector<const CgroupIdentity*> ContainerNames::owners_of_ids(const std::vector<CgroupIdentity>& containers) const {
  // A runtime that was killed leaves the cgroup of what it ran; the container may run again in another one.
  const auto rank = [this](const CgroupIdentity* one) {
    return std::tuple(one->place > CgroupIdentity::Place::elsewhere, !is_inhabited_(one->path).value_or(false),
                      one->place, !names_.contains(one->path));
  };
  // A user's id says nothing about the machine's containers.
  std::map<std::pair<std::string_view, std::string_view>, const CgroupIdentity*> owner;
  for (const CgroupIdentity& container : containers) {
    const auto [at, added] = owner.try_emplace({container.user, container.container_id}, &container);
    if (!added && rank(&container) < rank(at->second)) {
      at->second = &container;
    }
  }
  const auto all = owner | std::views::values;
  return {all.begin(), all.end()};
}

void ContainerNames::read_kubelet(const std::vector<const CgroupIdentity*>& owners) {
  std::optional<KubeletLinks> links;
  for (const CgroupIdentity* container : owners) {
    if (container->pod_uid.empty() || names_.contains(container->path)) {
      continue;
    }
    if (!links) {
      links.emplace(sources_.log);
    }
    if (const ContainerName* const name = links->find(*container)) {
      names_.emplace(container->path, *name);
    }
  }
}

void ContainerNames::read_engines(const std::vector<const CgroupIdentity*>& owners) {
  std::set<std::string> users;
  for (const CgroupIdentity* container : owners) {
    if (container->place == CgroupIdentity::Place::users && !users.contains(container->user) &&
        is_inhabited_(container->path).value_or(true)) {
      users.insert(container->user);
    }
  }
  engines_.look(users);
  for (const CgroupIdentity* container : owners) {
    // An engine inside a container has its files there; a pod's container has its name from the kubelet.
    if (container->place == CgroupIdentity::Place::inside_container || !container->pod_uid.empty()) {
      continue;
    }
    if (auto name = engines_.find(*container)) {
      names_[container->path] = std::move(*name);
    }
  }
  engines_.forget_others();
}

std::size_t ContainerNames::refresh(const std::vector<CgroupIdentity>& containers) {
  const std::vector<const CgroupIdentity*> owners = owners_of_ids(containers);
  std::set<std::string_view> present;
  for (const CgroupIdentity* container : owners) {
    present.insert(container->path);
  }
  std::erase_if(names_, [&present](const auto& entry) { return !present.contains(entry.first); });
  read_kubelet(owners);
  read_engines(owners);
  const std::set<std::string> missed_before = std::exchange(missed_, {});
  misses_new_ = false;
  for (const CgroupIdentity* container : owners) {
    if (!container->pod_uid.empty() && !names_.contains(container->path)) {
      misses_new_ |= !missed_before.contains(container->path);
      missed_.insert(container->path);
    }
  }
  return missed_.size();
}

}  // namespace tacho::targets
