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

/// Appends the labels of a container: namespace, pod, container, and the user whose engine runs it unless it is the
/// machine's engine.
void add_container(Labels& labels, const ContainerName& name, const CgroupIdentity& identity);

/// The name of a discovered container or unit: "shop/api" in Kubernetes, a container's name, "nginx.service", a path.
/// The names of those of a user or of a virtual machine begin with the owner: "user@1000/web.service",
/// "vm-1/nginx.service".
/// @param name nullptr if unknown: then a container is named by the first digits of its id
std::string discovered_name(const CgroupIdentity& identity, const ContainerName* name);

/// Drops and renames labels as configured; `target` stays.
void relabel(Labels& labels, const config::ContainerLabels& wishes);

}  // namespace tacho::targets
