#pragma once

#include <string>
#include <vector>

namespace tacho::targets {

/// The name of a container for people, and its source. Namespace and pod are empty outside Kubernetes.
struct ContainerName {
  std::string namespace_;
  std::string pod;
  std::string container;
  std::string image = {};            ///< as it was given to the engine: "nginx:1.27"
  std::string compose_project = {};  ///< of Docker's compose
  std::string compose_service = {};

  bool operator==(const ContainerName&) const = default;
};

/// The sources of names: directories of the kubelet and the engines; no API, no socket. A directory that does not exist
/// (or is not mounted into tacho's own container) is no source, without an error.
struct NameSources {
  std::string log = "/var/log";    ///< containers/ and pods/ of the kubelet
  std::string lib = "/var/lib";    ///< containers/storage of podman, docker of Docker
  std::string snap = "/var/snap";  ///< docker of Docker from a snap
  std::string home = "/home";      ///< of users, for their rootless engines
};

}  // namespace tacho::targets
