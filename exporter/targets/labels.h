#pragma once

#include <string>
#include <utility>
#include <vector>

#include "config/config.h"
#include "targets/cgroup_path.h"
#include "targets/container_name.h"

namespace tacho::targets {

/// Names and values, `target` first.
using Labels = std::vector<std::pair<std::string, std::string>>;

/// `target` and the labels that the configuration gives.
Labels labels_of(const config::TargetRule& entry);

/// Appends what is known of a container: namespace, pod, container, and the user whose engine runs it if that is not
/// the machine's.
void add_container(Labels& labels, const ContainerName& name, const CgroupIdentity& identity);

/// What a discovered container or unit is called: "shop/api" in Kubernetes, a container's name, "nginx.service", a
/// path. Those of a user or of a virtual machine say whose they are: "user@1000/web.service", "vm-1/nginx.service".
/// @param name nullptr where it is not known: then a container goes by the first digits of its id
std::string discovered_name(const CgroupIdentity& identity, const ContainerName* name);

/// Drops and renames as the configuration wishes; `target` stays.
void relabel(Labels& labels, const config::ContainerLabels& wishes);

}  // namespace tacho::targets
