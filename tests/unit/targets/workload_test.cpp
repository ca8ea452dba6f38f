#include "targets/workload.h"

#include <catch2/catch.hpp>
#include <string>

using tacho::targets::Workload;
using tacho::targets::workload_of;

TEST_CASE("a pod's name tells its workload") {
  struct Row {
    const char* pod;
    const char* name;
    const char* kind;
  };
  const std::string uid = "0a1b2c3d-0000-4000-8000-00112233aabb";
  constexpr Row rows[] = {
      {"web-6d4cf56db6-x2x7k", "web", "Deployment"},
      {"coredns-5d78c9869d-8gx5v", "coredns", "Deployment"},
      {"nginx-deployment-66b6c48dd5-7gl6h", "nginx-deployment", "Deployment"},
      {"api-v2-7d54b84d96-qwz5c", "api-v2", "Deployment"},
      {"web-0-7d54b84d96-qwz5c", "web-0", "Deployment"},
      {"a-7f9d8b6c4-bcdfg", "a", "Deployment"},   // nine digits
      {"a-87654bcd-24568", "a", "Deployment"},    // eight, and a suffix of digits
      {"a-5697844568-x2x7k", "a", "Deployment"},  // a hash without letters is no time
      {"istio.gateway-68f5bc9f66-h9s8t", "istio.gateway", "Deployment"},
      {"hello-00001-deployment-7d54b84d96-x2x7k", "hello-00001-deployment", "Deployment"},
      {"app-with-a-name-so-long-that-the-end-of-its-hash-go-66b6c4x2x7k",
       "app-with-a-name-so-long-that-the-end-of-its-hash-go", "Deployment"},
      {"daemon-with-a-name-so-long-that-there-is-no-dash-left-for-x2x7k",
       "daemon-with-a-name-so-long-that-there-is-no-dash-left-for", "DaemonSet"},
      {"web-0", "web", "StatefulSet"},
      {"kafka-broker-12", "kafka-broker", "StatefulSet"},
      {"my-cluster-zookeeper-2", "my-cluster-zookeeper", "StatefulSet"},
      {"db-10310", "db", "StatefulSet"},  // 0, 1 and 3 are in no suffix
      {"node-exporter-x2x7k", "node-exporter", "DaemonSet"},
      {"kube-proxy-4bvzr", "kube-proxy", "DaemonSet"},
      {"fluentd-24568", "fluentd", "DaemonSet"},
      {"agent-ctrl-x2x7k", "agent-ctrl", "DaemonSet"},
      {"import-20240131-x2x7k", "import-20240131", "DaemonSet"},  // a date is no minute
      {"backup-28941120-x2x7k", "backup", "CronJob"},
      {"nightly-report-29383200-9xkql", "nightly-report", "CronJob"},
      {"backup-1609459200-x2x7k", "backup", "CronJob"},  // seconds, before 1.21
      {"backup-28941120-3-x2x7k", "backup", "CronJob"},  // indexed
      {"import-3-x2x7k", "import", "Job"},
      {"import-0-x2x7k", "import", "Job"},
      {"training-run-127-k8s9x", "training-run", "Job"},
      {"debug", "debug", "Pod"},
      {"my-debug", "my-debug", "Pod"},
      {"web-nginx", "web-nginx", "Pod"},
      {"web-", "web-", "Pod"},
      {"-0", "-0", "Pod"},
      {"-", "-", "Pod"},
      {"web-007", "web-007", "Pod"},
      {"web-x2x7K", "web-x2x7K", "Pod"},
      {"web-99999999999999999999999", "web-99999999999999999999999", "Pod"},
      {"x2x7k", "x2x7k", "Pod"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.pod);
    const Workload found = workload_of(row.pod, uid, "node-1");
    CHECK(found.name == row.name);
    CHECK(found.kind == row.kind);
  }
}

TEST_CASE("a static pod is told by its uid, and its node is cut off where that is known") {
  const std::string uid(32, '5');
  CHECK(workload_of("etcd-node-1", uid, "node-1") == Workload{"etcd", "StaticPod"});
  CHECK(workload_of("kube-apiserver-node-1.example.org", uid, "node-1.example.org") ==
        Workload{"kube-apiserver", "StaticPod"});
  CHECK(workload_of("etcd-node-1", uid, "") == Workload{"etcd-node-1", "StaticPod"});
  CHECK(workload_of("etcd-node-1", uid, "node-2") == Workload{"etcd-node-1", "StaticPod"});
  CHECK(workload_of("node-1", uid, "node-1") == Workload{"node-1", "StaticPod"});
}

TEST_CASE("outside Kubernetes there is no workload") {
  CHECK(workload_of("", "", "") == Workload{});
}
