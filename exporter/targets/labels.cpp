#include "targets/labels.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "config/checks.h"

namespace tacho::targets {
namespace {

constexpr std::size_t kShortId = 12;

}  // namespace

Labels labels_of(const config::TargetRule& entry) {
  Labels labels{{"target", entry.name}};
  labels.insert(labels.end(), entry.labels.begin(), entry.labels.end());
  return labels;
}

void add_container(Labels& labels, const ContainerName& name, const CgroupIdentity& identity) {
  if (!name.namespace_.empty()) {
    labels.emplace_back("namespace", name.namespace_);
  }
  if (!name.pod.empty()) {
    labels.emplace_back("pod", name.pod);
  }
  labels.emplace_back("container", name.container);
  if (!identity.user.empty()) {
    labels.emplace_back("user", identity.user);
  }
}

std::string discovered_name(const CgroupIdentity& identity, const ContainerName* name) {
  const std::string owner = (identity.machine.empty() ? "" : identity.machine + "/") +
                            (identity.user.empty() ? "" : "user@" + identity.user + "/");
  switch (identity.kind) {
    case CgroupIdentity::Kind::container:
      if (name != nullptr && !name->namespace_.empty()) {
        return owner + name->namespace_ + "/" + name->container;
      }
      return owner + (name == nullptr || name->container == config::kOverflowTarget
                          ? identity.container_id.substr(0, kShortId)
                          : name->container);
    case CgroupIdentity::Kind::unit:
      return owner + identity.unit;
    default:
      return identity.path;
  }
}

void relabel(Labels& labels, const config::ContainerLabels& wishes) {
  using Label = config::ContainerLabels::Label;
  const std::array<std::tuple<std::string_view, Label, const std::string*>, 4> all{
      std::tuple("namespace", Label::namespace_, &wishes.rename.namespace_),
      std::tuple("pod", Label::pod, &wishes.rename.pod),
      std::tuple("container", Label::container, &wishes.rename.container),
      std::tuple("cgroup", Label::cgroup, &wishes.rename.cgroup)};
  for (const auto& [name, label, renamed] : all) {
    const auto at = std::ranges::find(labels, name, &Labels::value_type::first);
    if (at == labels.end()) {
      continue;
    }
    if (std::ranges::find(wishes.drop, label) != wishes.drop.end()) {
      labels.erase(at);
    } else {
      at->first = *renamed;
    }
  }
}

}  // namespace tacho::targets
