#pragma once

#include <array>
#include <string_view>

#include "base/result.h"
#include "config/type.h"

namespace tacho::config {

/// Requirements for single values and combinations of keys beyond their types. The messages of Results continue a
/// sentence that starts with the value.

/// Everything beyond limits.max_targets is counted under this name, so no other target may have it.
inline constexpr std::string_view kOverflowTarget = "other";
/// The keys of which a target has exactly one.
inline constexpr std::array<std::string_view, 4> kSelectors{"cgroup", "container", "process", "self"};

Result<void> check_glob(std::string_view pattern);
/// A glob that can match a cgroup path: it starts with '/' and has no empty component.
Result<void> check_cgroup_glob(std::string_view pattern);
/// A glob that can match an absolute path: it starts with '/' or "**".
Result<void> check_exe_glob(std::string_view pattern);
Result<void> check_target_name(std::string_view name);

/// A name for one of the labels namespace, pod, container and cgroup, which may go by these names, too.
Result<void> check_renamed_label(std::string_view name);
Result<void> check_peer_name(std::string_view name);
Result<void> check_network(std::string_view network);

void check_process(ProcessSelector& process, const Node& node, const Context& context);
void check_target(TargetRule& rule, const Node& node, const Context& context);
void check_config(Config& config, const Node& node, const Context& context);

}  // namespace tacho::config
