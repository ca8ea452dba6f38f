#include "targets/surroundings.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "targets/cgroup_tree.h"

namespace tacho::targets {
namespace {

namespace fs = std::filesystem;

/// PROC_PID_INIT_INO (include/linux/proc_ns.h): the number of the first PID namespace.
constexpr std::string_view kFirstPidNamespace = "pid:[4026531836]";
/// Of a hierarchy's own root; what a cgroup namespace shows as the root has another one.
constexpr ino_t kRootInode = 1;

bool has_own_pid_namespace(const std::string& procfs) {
  std::error_code error;
  const std::string name = fs::read_symlink(procfs + "/self/ns/pid", error).string();
  return !error && name != kFirstPidNamespace;
}

bool shows_part(const std::string& cgroupfs) {
  struct stat about{};
  return ::stat(cgroupfs.c_str(), &about) == 0 && about.st_ino != kRootInode;
}

/// Containers that a runtime has put into v1's hierarchies alone, on a machine whose v2 is used.
std::vector<std::string> containers_of_v1_alone(const std::string& v1, const std::string& v2) {
  std::vector<std::string> alone;
  const auto old = walk_cgroups(v1);
  const auto all = walk_cgroups(v2);
  if (!old || !all) {
    return alone;
  }
  for (const auto& [path, id] : old->found) {
    const CgroupIdentity identity = identify(path);
    if (identity.kind == CgroupIdentity::Kind::container && identity.path == path && !all->found.contains(path)) {
      alone.push_back(path);
    }
  }
  return alone;
}

bool may_be(const CgroupIdentity& container, std::string_view runtime) {
  return container.pod_uid.empty() && (container.runtime == runtime || container.runtime.empty());
}

}  // namespace

std::vector<std::string> hidden_from(const Paths& paths, const TargetRules& rules) {
  std::vector<std::string> hidden;
  if (rules.needs_listeners() && has_own_pid_namespace(paths.procfs)) {
    hidden.emplace_back(
        "only the processes of tacho's own PID namespace are seen, so no other server is discovered: start tacho's "
        "container with --pid host (Kubernetes: hostPID: true), or select by `container` or `cgroup`");
  }
  if (rules.needs_cgroup_tree() && shows_part(paths.cgroupfs)) {
    hidden.emplace_back("the cgroups at " + paths.cgroupfs +
                        " are not the machine's, so containers are not told apart: start tacho's container with "
                        "--volume /sys/fs/cgroup:/sys/fs/cgroup:ro");
  }
  const std::string v1 = rules.needs_cgroup_tree() && !paths.cgroup_v1
                             ? find_controller_mount(paths.procfs + "/self/mountinfo", "memory")
                             : std::string();
  if (const auto alone = v1.empty() ? std::vector<std::string>() : containers_of_v1_alone(v1, paths.cgroupfs);
      !alone.empty()) {
    hidden.push_back(std::to_string(alone.size()) + (alone.size() == 1 ? " container is" : " containers are") +
                     " in cgroup v1 alone (" + alone.front() + "), so not told apart by " + paths.cgroupfs +
                     ": --path.cgroupfs=" + v1 + " does");
  }
  return hidden;
}

std::vector<std::string> missing_names(const NameSources& sources, std::span<const CgroupIdentity> unnamed) {
  struct Source {
    std::string place;
    std::string usual;
    bool (*tells)(const CgroupIdentity&);
  };
  const std::array<Source, 3> all{{
      {sources.lib + "/docker/containers", "/var/lib/docker/containers",
       [](const CgroupIdentity& container) { return may_be(container, "docker"); }},
      {sources.lib + "/containers/storage/overlay-containers", "/var/lib/containers/storage/overlay-containers",
       [](const CgroupIdentity& container) { return may_be(container, "podman"); }},
      {sources.log + "/containers", "/var/log/containers",
       [](const CgroupIdentity& container) { return !container.pod_uid.empty(); }},
  }};
  std::vector<std::string> missing;
  for (const Source& source : all) {
    std::error_code error;
    const auto count = std::ranges::count_if(unnamed, source.tells);
    if (count == 0 || fs::is_directory(source.place, error)) {
      continue;
    }
    missing.push_back(std::to_string(count) + (count == 1 ? " container has" : " containers have") + " no name: " +
                      source.place + " is not there; if tacho runs in a container, start it with --volume " +
                      source.usual + ":" + source.place + ":ro");
  }
  return missing;
}

}  // namespace tacho::targets
