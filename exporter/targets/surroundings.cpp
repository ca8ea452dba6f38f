#include "targets/surroundings.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

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
