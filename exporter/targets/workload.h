#pragma once

#include <string>
#include <string_view>

namespace tacho::targets {

/// The workload of a pod, read from its name; both empty outside Kubernetes.
struct Workload {
  std::string name;
  std::string kind;  ///< Deployment, StatefulSet, DaemonSet, Job, CronJob, StaticPod, Pod

  bool operator==(const Workload&) const = default;
};

/// By the rules that Kubernetes' controllers make names of pods by, without asking its API:
///
///   web-6d4cf56db6-x2x7k      Deployment web      (the hash of a ReplicaSet, then five letters)
///   web-0                     StatefulSet web
///   backup-28941120-x2x7k     CronJob backup      (minutes since 1970)
///   import-3-x2x7k            Job import          (an indexed one)
///   agent-x2x7k               DaemonSet agent     (a Job, a bare ReplicaSet look the same)
///   etcd-node-1               StaticPod etcd      (by its uid, which is a hash; `node` is cut off)
///   debug                     Pod debug
Workload workload_of(std::string_view pod, std::string_view pod_uid, std::string_view node);

}  // namespace tacho::targets
