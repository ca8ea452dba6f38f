#pragma once

#include <string>
#include <vector>

namespace tacho::targets {

/// What people call a container, and where it comes from. Namespace and pod are empty outside Kubernetes.
struct ContainerName {
  std::string namespace_;
  std::string pod;
  std::string container;
  std::string image = {};            ///< as the engine was asked for it: "nginx:1.27"
  std::string compose_project = {};  ///< of Docker's compose
  std::string compose_service = {};

  bool operator==(const ContainerName&) const = default;
};

/// Where names are read: directories that the kubelet and the engines keep, no API, no socket. What is not there (or
/// not mounted into tacho's own container) is no source, without an error.
struct NameSources {
  std::string log = "/var/log";    ///< containers/ and pods/ of the kubelet
  std::string lib = "/var/lib";    ///< containers/storage of podman, docker of Docker
  std::string snap = "/var/snap";  ///< docker of Docker from a snap
  std::string home = "/home";      ///< of users, for their rootless engines
};

}  // namespace tacho::targets
