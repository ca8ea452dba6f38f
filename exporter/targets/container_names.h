#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "targets/cgroup_path.h"
#include "targets/container_name.h"
#include "targets/engine_files.h"

namespace tacho::targets {

/// Names of containers by the path of their cgroup. The kubelet's names are kept until the container is gone; those of
/// the engines may change.
class ContainerNames {
 public:
  using Map = std::map<std::string, ContainerName, std::less<>>;

  /// Whether a process is in a cgroup, by its path; nothing if the cgroup is not to be seen from here.
  using IsInhabited = std::function<std::optional<bool>(const std::string& path)>;

  ContainerNames(NameSources sources, IsInhabited is_inhabited)
      : sources_(std::move(sources)), is_inhabited_(std::move(is_inhabited)), engines_(sources_) {}

  /// Learns the names of these containers and drops all others. Where several cgroups carry one id, only one has the
  /// name: one that only root can have made, of these one with processes in it, else one that only a runtime can have
  /// made.
  /// @return how many containers of pods are still without a name; pause containers are among them
  std::size_t refresh(const std::vector<CgroupIdentity>& containers);

  [[nodiscard]] const Map& known() const { return names_; }
  /// Whether the last refresh found no name for a pod's container that is new.
  [[nodiscard]] bool misses_new() const { return misses_new_; }
  /// Whether an engine has renamed a container since the last refresh.
  [[nodiscard]] bool outdated() const { return engines_.changed(); }

 private:
  [[nodiscard]] std::vector<const CgroupIdentity*> owners_of_ids(const std::vector<CgroupIdentity>& containers) const;
  void read_kubelet(const std::vector<const CgroupIdentity*>& owners);
  void read_engines(const std::vector<const CgroupIdentity*>& owners);

  NameSources sources_;
  IsInhabited is_inhabited_;
  EngineFiles engines_;
  Map names_;
  std::set<std::string> missed_;  // paths of pods' containers without a name
  bool misses_new_ = false;
};

}  // namespace tacho::targets
