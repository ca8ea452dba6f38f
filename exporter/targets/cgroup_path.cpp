#include "targets/cgroup_path.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

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
  bool rootless = false;  ///< also made for ordinary users, below their managers
};
constexpr std::array kScopes{
    Scope{"cri-containerd-", "containerd"}, Scope{"crio-", "cri-o"}, Scope{"docker-", "docker", true},
    Scope{"libpod-", "podman", true}, Scope{"nerdctl-", "containerd", true},
    // The runtimes' own names, where an engine gives none: rootless Docker without controllers.
    Scope{"runc-", "runc", true}, Scope{"crun-", "crun", true}};

/// Services below which a runtime puts containers where its driver is not the kubelet's.
constexpr std::array<std::string_view, 9> kRuntimeServices{
    "containerd.service", "crio.service",        "docker.service",
    "k3s-agent.service",  "k3s.service",         "kubelet.service",
    "rke2-agent.service", "rke2-server.service", "snap.microk8s.daemon-containerd.service"};

/// What the prefix of a container's cgroup ("cri-containerd") stands for; itself if it is unknown.
std::string_view runtime_of(std::string_view prefix) {
  const auto known = std::ranges::find_if(
      kScopes, [prefix](const Scope& scope) { return scope.prefix.substr(0, scope.prefix.size() - 1) == prefix; });
  return known != kScopes.end() ? known->runtime : prefix;
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// "x" of "<begin>x<end>"; empty for all others.
std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
  if (!text.starts_with(begin) || !text.ends_with(end) || text.size() <= begin.size() + end.size()) {
    return {};
  }
  return text.substr(begin.size(), text.size() - begin.size() - end.size());
}

CgroupIdentity container(std::string_view runtime, std::string_view id) {
  CgroupIdentity found;
  found.kind = CgroupIdentity::Kind::container;
  found.runtime = runtime;
  found.container_id = id;
  return found;
}

/// The container that the prefix of a component names.
/// @param rootless only such as an ordinary user's engine makes
std::optional<CgroupIdentity> scope_of(std::string_view name, bool rootless) {
  for (const Scope& scope : kScopes) {
    if ((scope.rootless || !rootless) && name.starts_with(scope.prefix) &&
        is_container_id(name.substr(scope.prefix.size()))) {
      return container(scope.runtime, name.substr(scope.prefix.size()));
    }
  }
  return std::nullopt;
}

/// The container that a path component names; `parent` is the component above it.
std::optional<CgroupIdentity> container_of(std::string_view component, std::string_view parent, bool rootless) {
  std::string_view name = component;
  if (name.ends_with(".scope")) {
    name.remove_suffix(6);
  }
  if (rootless) {
    return scope_of(name, true);
  }
  // cgroupfs paths under a systemd driver: "<slice>:<runtime>:<id>".
  if (const auto colon = component.rfind(':'); colon != std::string_view::npos && colon > 0) {
    const auto begin = component.rfind(':', colon - 1);
    if (begin != std::string_view::npos && is_container_id(component.substr(colon + 1))) {
      auto found = container(runtime_of(component.substr(begin + 1, colon - begin - 1)), component.substr(colon + 1));
      found.pod_uid = pod_uid(component.substr(0, begin)).value_or("");
      return found;
    }
  }
  if (auto found = scope_of(name, false)) {
    return found;
  }
  // podman's containers have a prefix: what has none beside them is a pod.
  if (is_container_id(name) && parent != "libpod_parent") {
    return container(parent == "docker" ? "docker" : "", name);
  }
  constexpr std::string_view kLxc = "lxc.payload.";
  if (name.starts_with(kLxc) && name.size() > kLxc.size()) {
    return container("lxc", name.substr(kLxc.size()));
  }
  // ECS: "<32 hex>-<digits>" below /ecs/<task>.
  if (name.find('-') == 32 && is_hex(name.substr(0, 32)) && is_digits(name.substr(33))) {
    return container("ecs", name);
  }
  return std::nullopt;
}

/// What systemd does itself: nobody has put a server there.
bool is_plumbing(std::string_view component) {
  constexpr std::array<std::string_view, 4> kUnits{".socket", ".mount", ".automount", ".swap"};
  return component == "init.scope" ||
         std::ranges::any_of(kUnits, [component](std::string_view unit) { return component.ends_with(unit); });
}

/// "vm-1" of "machine-vm\x2d1.scope" and "systemd-nspawn@vm-1.service" in machine.slice; empty for all others.
std::string machine_of(std::string_view component, std::string_view parent) {
  std::string_view escaped = between(component, "machine-", ".scope");
  if (escaped.empty()) {
    escaped = between(component, "systemd-nspawn@", ".service");
  }
  std::string name(parent == "machine.slice" ? escaped : std::string_view{});
  for (auto at = name.find("\\x2d"); at != std::string::npos; at = name.find("\\x2d", at + 1)) {
    name.replace(at, 4, "-");
  }
  return name;
}

/// Whether what is below a component has been made by a runtime of the machine.
bool is_runtime_root(std::string_view component) {
  constexpr std::array<std::string_view, 6> kRoots{"docker",       "machine.slice", "libpod_parent",
                                                   "system.slice", "ecs",           "ecstasks"};
  return component.starts_with("kubepods") || component.find("-kubepods") != std::string_view::npos ||
         std::ranges::find(kRoots, component) != kRoots.end();
}

/// Goes down a path, component by component.
class Walk {
 public:
  explicit Walk(std::string_view path) : path_(path) { best_.path = path; }

  void step(std::string_view component, std::size_t end) {
    if (auto uid = pod_uid(component)) {
      uid_ = std::move(*uid);
    }
    const bool root = is_runtime_root(component);
    auto found = zone_ == Zone::given_away || is_monitor(component)
                     ? std::nullopt
                     : container_of(component, parent_, zone_ == Zone::user);
    if (found) {
      enter_container(std::move(*found), root, end);
    } else if (best_.kind != Kind::container) {
      enter(component, end);
    }
    below_root_ = below_root_ || root;
    parent_ = component;
  }

  CgroupIdentity result() { return std::move(best_); }

 private:
  using Kind = CgroupIdentity::Kind;
  using Place = CgroupIdentity::Place;
  /// Who makes cgroups where the walk has come to: root, a user's engine, root of a container, anybody else.
  enum class Zone : std::uint8_t { host, user, inside, given_away };

  void enter_container(CgroupIdentity found, bool root, std::size_t end) {
    found.path = path_.substr(0, end);
    found.user = best_.user;
    found.machine = best_.machine;
    if (found.pod_uid.empty() && zone_ != Zone::user) {
      found.pod_uid = uid_;
    }
    const bool rooted = below_root_ || root || found.runtime == "lxc";
    found.place = zone_ == Zone::user     ? Place::users
                  : zone_ == Zone::inside ? Place::inside_container
                  : rooted                ? Place::runtime_root
                                          : Place::elsewhere;
    best_ = std::move(found);
    zone_ = zone_ == Zone::user ? Zone::given_away : Zone::inside;
  }

  void enter(std::string_view component, std::size_t end) {
    if (std::string machine = machine_of(component, parent_); !machine.empty() && best_.machine.empty()) {
      best_.machine = std::move(machine);
      zone_ = Zone::inside;
      return;
    }
    if (const auto user = between(component, "user@", ".service"); is_digits(user)) {
      best_.kind = Kind::session;
      best_.path = path_;
      best_.unit.clear();
      best_.user = user;
      zone_ = zone_ == Zone::host ? Zone::user : Zone::given_away;
    } else if (component.ends_with(".service")) {
      best_.kind = Kind::unit;
      best_.unit = component;
      best_.path = path_.substr(0, end);
      const bool runtime = std::ranges::find(kRuntimeServices, component) != kRuntimeServices.end();
      if (zone_ == Zone::host && !runtime) {
        zone_ = Zone::given_away;
      }
    } else if (best_.kind != Kind::unit && is_plumbing(component)) {
      best_.kind = Kind::plumbing;
      zone_ = Zone::given_away;
    } else if (best_.kind == Kind::other && component.starts_with("session-") && component.ends_with(".scope")) {
      best_.kind = Kind::session;
      zone_ = Zone::given_away;
    }
  }

  std::string_view path_;
  std::string_view parent_;
  CgroupIdentity best_;
  std::string uid_;
  Zone zone_ = Zone::host;
  bool below_root_ = false;
};

}  // namespace

bool is_monitor(std::string_view component) {
  return component == "conmon" || component.starts_with("crio-conmon-") || component.starts_with("libpod-conmon-");
}

CgroupIdentity identify(std::string_view path) {
  if (path == "/" || path.empty()) {
    CgroupIdentity root;
    root.path = path;
    root.kind = CgroupIdentity::Kind::session;
    return root;
  }
  Walk walk(path);
  for (std::size_t begin = 1; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    walk.step(path.substr(begin, end - begin), end);
    begin = end + 1;
  }
  return walk.result();
}

}  // namespace tacho::targets
