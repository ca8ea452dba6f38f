#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "targets/cgroup_path.h"
#include "targets/container_name.h"

namespace tacho::targets {

/// "/var/log/pods/<namespace>_<pod>_<uid>/<container>/0.log", where the kubelet's links lead; nothing if it is none.
struct PodLog {
  ContainerName name;
  std::string uid;
};
std::optional<PodLog> parse_pod_log(std::string_view path);

/// The links "<pod>_<namespace>_<container>-<id>.log" that the kubelet keeps for its containers, as they were when this
/// was made.
class KubeletLinks {
 public:
  /// @param log the directory of containers/
  explicit KubeletLinks(const std::string& log);

  /// The kubelet's name of a container. A link counts only if the container's cgroup is in the same pod.
  [[nodiscard]] const ContainerName* find(const CgroupIdentity& container) const;

 private:
  struct Link {
    ContainerName name;
    std::string uid;  ///< of the pod, if the link leads to its logs
    std::string id;   ///< the first digits only, or none, where the name was cut at 255 bytes
  };
  static std::optional<Link> read(const std::string& directory, const std::string& file);
  static bool leads_to(const Link& link, const CgroupIdentity& container);

  std::vector<Link> links_;
  std::unordered_map<std::string, std::size_t> by_id_;
};

}  // namespace tacho::targets
