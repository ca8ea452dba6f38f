#include "targets/cgroup_path.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

using tacho::targets::CgroupIdentity;
using tacho::targets::identify;
using Kind = CgroupIdentity::Kind;

namespace {

std::string hex(char digit, std::size_t count = 64) {
  return std::string(count, digit);
}

/// Inserts ids into a path: A, B are 64 hex digits, U is a pod's uid with underscores, D the same with dashes.
std::string expand(const std::string& shape) {
  std::string out;
  for (const char c : shape) {
    switch (c) {
      case 'A':
        out += hex('a');
        break;
      case 'B':
        out += "0123456789abcdef" + hex('b', 48);
        break;
      case 'U':
        out += "0f3c1234_aaaa_bbbb_cccc_0123456789ab";
        break;
      case 'D':
        out += "0f3c1234-aaaa-bbbb-cccc-0123456789ab";
        break;
      case 'S':
        out += hex('5', 32);
        break;
      default:
        out += c;
    }
  }
  return out;
}

struct Container {
  const char* what;
  const char* path;  ///< of the container's own cgroup, see expand()
  const char* runtime;
  const char* id;
  const char* pod_uid;
};

const std::vector<Container> kContainers{
    {"containerd, systemd driver",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU.slice/cri-containerd-A.scope", "containerd", "A",
     "D"},
    {"containerd, guaranteed pod", "/kubepods.slice/kubepods-podU.slice/cri-containerd-A.scope", "containerd", "A",
     "D"},
    {"containerd, best effort",
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podU.slice/cri-containerd-B.scope", "containerd",
     "B", "D"},
    {"containerd, static pod", "/kubepods.slice/kubepods-podS.slice/cri-containerd-A.scope", "containerd", "A", "S"},
    {"CRI-O", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podU.slice/crio-A.scope", "cri-o", "A", "D"},
    {"Docker as a kubelet's runtime", "/kubepods.slice/kubepods-podU.slice/docker-A.scope", "docker", "A", "D"},
    {"cgroupfs driver", "/kubepods/burstable/podD/A", "", "A", "D"},
    {"cgroupfs driver, guaranteed pod", "/kubepods/podD/A", "", "A", "D"},
    {"cgroupfs driver, static pod", "/kubepods/besteffort/podS/B", "", "B", "S"},
    {"mixed drivers", "/system.slice/containerd.service/kubepods-burstable-podU.slice:cri-containerd:A", "containerd",
     "A", "D"},
    {"mixed drivers, guaranteed pod", "/system.slice/containerd.service/kubepods-podU.slice:cri-containerd:A",
     "containerd", "A", "D"},
    {"mixed drivers, CRI-O", "/kubepods-podU.slice:crio:A", "cri-o", "A", "D"},
    {"kind: a node is a container itself",
     "/docker/A/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-podU.slice/cri-containerd-B.scope", "containerd",
     "B", "D"},
    {"kind with the systemd driver",
     "/system.slice/docker-A.scope/kubepods.slice/kubepods-podU.slice/cri-containerd-B.scope", "containerd", "B", "D"},
    {"container in a container", "/docker/A/docker/B", "docker", "B", ""},
    {"Docker, cgroupfs", "/docker/A", "docker", "A", ""},
    {"Docker, systemd", "/system.slice/docker-A.scope", "docker", "A", ""},
    {"podman", "/machine.slice/libpod-A.scope", "podman", "A", ""},
    {"podman, cgroupfs", "/libpod_parent/libpod-A", "podman", "A", ""},
    {"podman, rootless", "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-A.scope", "podman", "A", ""},
    {"nerdctl, cgroupfs", "/default/A", "", "A", ""},
    {"nerdctl, systemd", "/system.slice/nerdctl-A.scope", "containerd", "A", ""},
    {"LXC", "/lxc.payload.web-1", "lxc", "web-1", ""},
    {"ECS", "/ecs/SS/S-1234567890", "ecs", "S-1234567890", ""},
};

}  // namespace

TEST_CASE("every runtime's container is recognised, and so is what is below it") {
  for (const Container& row : kContainers) {
    for (const char* inner :
         {"", "/container", "/init.scope", "/system.slice/nginx.service", "/user.slice/session-2.scope"}) {
      const std::string own = expand(row.path);
      CAPTURE(row.what, own, inner);
      const CgroupIdentity found = identify(own + inner);
      CHECK(found.kind == Kind::container);
      CHECK(found.path == own);
      CHECK(found.runtime == row.runtime);
      CHECK(found.container_id == expand(row.id));
      CHECK(found.pod_uid == expand(row.pod_uid));
      CHECK(found.unit.empty());
    }
  }
}

TEST_CASE("what looks like a container is not always one") {
  for (const char* shape : {
           "/kubepods.slice/kubepods-podU.slice/crio-conmon-A.scope",  // the monitor of a container
           "/machine.slice/libpod-conmon-A.scope",
           "/kubepods.slice/kubepods-podU.slice",  // a pod is none yet
           "/kubepods/burstable/podD",
           "/docker",
           "/lxc.monitor.web-1",
           "/machine.slice/libpod-pod.slice",
           "/docker/aA",  // 65 digits
           "/docker/AAAA",
           "/system.slice/docker-a.scope",
           "/ecs/S-12x",
           "/ecs/S-",
       }) {
    const std::string path = expand(shape);
    CAPTURE(path);
    CHECK(identify(path).kind == Kind::other);
    CHECK(identify(path).path == path);
    CHECK(identify(path).container_id.empty());
  }
  const std::string upper = "/docker/" + hex('A');
  CHECK(identify(upper).kind == Kind::other);
  const std::string short_id = "/docker/" + hex('a', 63);
  CHECK(identify(short_id).kind == Kind::other);
}

TEST_CASE("systemd services are units, the innermost one counts, and what is below one belongs to it") {
  struct Row {
    const char* path;
    const char* own;
    const char* unit;
  };
  constexpr Row rows[] = {
      {"/system.slice/nginx.service", "/system.slice/nginx.service", "nginx.service"},
      {"/system.slice/nginx.service/workers", "/system.slice/nginx.service", "nginx.service"},
      {"/system.slice/system-getty.slice/getty@tty1.service", "/system.slice/system-getty.slice/getty@tty1.service",
       "getty@tty1.service"},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/web.service",
       "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", "web.service"},
      {"/user.slice/user-1000.slice/user@1000.service/init.scope", "/user.slice/user-1000.slice/user@1000.service",
       "user@1000.service"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path);
    const CgroupIdentity found = identify(row.path);
    CHECK(found.kind == Kind::unit);
    CHECK(found.path == row.own);
    CHECK(found.unit == row.unit);
    CHECK(found.container_id.empty());
  }
}

TEST_CASE("sessions, init and the root are what somebody runs there") {
  for (const char* path : {"/", "", "/init.scope", "/user.slice/user-1000.slice/session-3.scope",
                           "/user.slice/user-0.slice/session-c1.scope"}) {
    CAPTURE(path);
    CHECK(identify(path).kind == Kind::session);
    CHECK(identify(path).path == path);
  }
}

TEST_CASE("everything else is left as it is") {
  for (const char* path :
       {"/tacho-test", "/a/b/c", "/system.slice", "/user.slice", "/machine.slice/machine-vm1.scope", "/../other"}) {
    CAPTURE(path);
    CHECK(identify(path).kind == Kind::other);
    CHECK(identify(path).path == path);
  }
}

TEST_CASE("a pod's uid needs 32 hex digits and a place for them") {
  CHECK(identify("/kubepods/pod1234/" + hex('a')).pod_uid.empty());
  CHECK(identify("/kubepods/tripod" + hex('5', 32) + "/" + hex('a')).pod_uid.empty());
  CHECK(identify("/kubepods/pod" + hex('g', 32) + "/" + hex('a')).pod_uid.empty());
}

TEST_CASE("hostile names are taken apart without harm") {
  const std::string id = hex('a');
  const std::vector<std::string> paths{"//",
                                       "/a//b/",
                                       "/:" + id,
                                       "/::" + id,
                                       ":" + id,
                                       id,
                                       "/x:" + id,
                                       "/pod",
                                       "/-pod",
                                       "/.scope",
                                       "/a\nb\"c",
                                       {"/\xff\xfe\0x", 5},
                                       "/" + std::string(10'000, '/'),
                                       "/" + std::string(100'000, 'a')};
  for (const std::string& path : paths) {
    const CgroupIdentity found = identify(path);
    CAPTURE(path.substr(0, 100));
    CHECK(path.starts_with(found.path));
    CHECK(found.container_id.size() <= 64);
    CHECK(found.runtime.size() < 64);  // never the id itself
  }
}
