#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "targets/cgroup_path.h"

namespace tacho::targets {

/// What people call a container. Namespace and pod are empty outside Kubernetes.
struct ContainerName {
  std::string namespace_;
  std::string pod;
  std::string container;

  bool operator==(const ContainerName&) const = default;
};

/// Where names are read: directories that the kubelet and the engines keep, no API, no socket. What is not there (or
/// not mounted into tacho's own container) is no source, without an error.
struct NameSources {
  std::string log = "/var/log";  ///< containers/ and pods/ of the kubelet
  std::string lib = "/var/lib";  ///< containers/storage of podman, docker/containers of Docker
};

/// "/var/log/pods/<namespace>_<pod>_<uid>/<container>/0.log", where the kubelet's links lead; nothing if it is none.
struct PodLog {
  ContainerName name;
  std::string uid;
};
std::optional<PodLog> parse_pod_log(std::string_view path);

/// Names of containers by id, remembered until the container is gone.
class ContainerNames {
 public:
  explicit ContainerNames(NameSources sources = {}) : sources_(std::move(sources)) {}

  /// Learns the names of these containers and forgets all others. Reads the sources only if a name is missing.
  /// @return how many are still without a name although they are a pod's; its pause container is one
  std::size_t refresh(const std::vector<CgroupIdentity>& containers);

  [[nodiscard]] const std::map<std::string, ContainerName, std::less<>>& known() const { return names_; }
  /// Whether the last refresh looked in vain for a pod's container that was not there before.
  [[nodiscard]] bool misses_new() const { return misses_new_; }

 private:
  void read_kubelet(const std::vector<const CgroupIdentity*>& missing);
  void read_podman(const std::vector<const CgroupIdentity*>& missing);
  void read_docker(const CgroupIdentity& container);

  NameSources sources_;
  std::map<std::string, ContainerName, std::less<>> names_;
  std::set<std::string> missed_;  // ids of pods' containers without a name
  bool misses_new_ = false;
};

}  // namespace tacho::targets
