#include "targets/cgroup_path.h"

#include <algorithm>
#include <array>
#include <optional>

namespace tacho::targets {
namespace {

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_container_id(std::string_view text) {
  return text.size() == 64 && is_hex(text);
}

/// "kubepods-burstable-pod<uid>.slice" or "pod<uid>", with underscores or dashes in the uid.
std::optional<std::string> pod_uid(std::string_view component) {
  if (component.ends_with(".slice")) {
    component.remove_suffix(6);
  }
  const auto mark = component.rfind("pod");
  if (mark == std::string_view::npos || (mark > 0 && component[mark - 1] != '-')) {
    return std::nullopt;
  }
  std::string uid(component.substr(mark + 3));
  std::ranges::replace(uid, '_', '-');
  std::string digits = uid;
  std::erase(digits, '-');
  if (digits.size() != 32 || !is_hex(digits)) {
    return std::nullopt;
  }
  return uid;
}

struct Scope {
  std::string_view prefix;
  std::string_view runtime;
};
constexpr std::array kScopes{Scope{"cri-containerd-", "containerd"}, Scope{"crio-", "cri-o"},
                             Scope{"docker-", "docker"}, Scope{"libpod-", "podman"}, Scope{"nerdctl-", "containerd"}};

/// What the prefix of a container's cgroup ("cri-containerd") stands for; itself if it is unknown.
std::string_view runtime_of(std::string_view prefix) {
  const auto known = std::ranges::find_if(
      kScopes, [prefix](const Scope& scope) { return scope.prefix.substr(0, scope.prefix.size() - 1) == prefix; });
  return known != kScopes.end() ? known->runtime : prefix;
}

/// The container that a path component names; `parent` is the component above it.
std::optional<CgroupIdentity> container_of(std::string_view component, std::string_view parent) {
  CgroupIdentity found;
  found.kind = CgroupIdentity::Kind::container;
  std::string_view name = component;
  // cgroupfs paths under a systemd driver: "<slice>:<runtime>:<id>".
  if (const auto colon = name.rfind(':'); colon != std::string_view::npos && colon > 0) {
    const auto runtime_begin = name.rfind(':', colon - 1);
    if (runtime_begin != std::string_view::npos && is_container_id(name.substr(colon + 1))) {
      found.runtime = runtime_of(name.substr(runtime_begin + 1, colon - runtime_begin - 1));
      found.container_id = name.substr(colon + 1);
      found.pod_uid = pod_uid(name.substr(0, runtime_begin)).value_or("");
      return found;
    }
  }
  if (name.ends_with(".scope")) {
    name.remove_suffix(6);
  }
  for (const Scope& scope : kScopes) {
    if (name.starts_with(scope.prefix) && is_container_id(name.substr(scope.prefix.size()))) {
      found.runtime = scope.runtime;
      found.container_id = name.substr(scope.prefix.size());
      return found;
    }
  }
  if (is_container_id(name)) {
    found.runtime = parent == "docker" ? "docker" : "";
    found.container_id = name;
    return found;
  }
  if (name.starts_with("lxc.payload.")) {
    found.runtime = "lxc";
    found.container_id = name.substr(12);
    return found;
  }
  // ECS: "<32 hex>-<digits>" below /ecs/<task>.
  if (const auto dash = name.find('-');
      dash == 32 && is_hex(name.substr(0, 32)) && name.size() > 33 &&
      std::ranges::all_of(name.substr(33), [](char c) { return c >= '0' && c <= '9'; })) {
    found.runtime = "ecs";
    found.container_id = name;
    return found;
  }
  return std::nullopt;
}

bool is_session(std::string_view component) {
  return component == "init.scope" || (component.starts_with("session-") && component.ends_with(".scope"));
}

}  // namespace

bool is_monitor(std::string_view component) {
  return component == "conmon" || component.starts_with("crio-conmon-") || component.starts_with("libpod-conmon-");
}

CgroupIdentity identify(std::string_view path) {
  CgroupIdentity best;
  best.path = path;
  if (path == "/" || path.empty()) {
    best.kind = CgroupIdentity::Kind::session;
    return best;
  }
  std::string uid;
  std::string_view parent;
  std::size_t begin = 1;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view component = path.substr(begin, end - begin);
    if (auto pod = pod_uid(component)) {
      uid = *pod;
    }
    if (auto container = is_monitor(component) ? std::nullopt : container_of(component, parent)) {
      best = *container;
      best.path = path.substr(0, end);
      if (best.pod_uid.empty()) {
        best.pod_uid = uid;
      }
    } else if (component.ends_with(".service") && best.kind != CgroupIdentity::Kind::container) {
      best.kind = CgroupIdentity::Kind::unit;
      best.unit = component;
      best.path = path.substr(0, end);
    } else if (is_session(component) && best.kind == CgroupIdentity::Kind::other) {
      best.kind = CgroupIdentity::Kind::session;
    }
    parent = component;
    begin = end + 1;
  }
  return best;
}

}  // namespace tacho::targets
