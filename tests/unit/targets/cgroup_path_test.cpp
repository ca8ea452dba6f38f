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

/// The same for paths in which these letters have a meaning of their own, too: only what stands alone between dashes,
/// dots and slashes.
std::string expand_ids(const std::string& path) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    const bool alone = i > 0 && std::string("-/").find(path[i - 1]) != std::string::npos &&
                       (i + 1 == path.size() || std::string("./").find(path[i + 1]) != std::string::npos);
    out += alone && path[i] == 'A' ? expand("A") : std::string(1, path[i]);
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
    {"podman, rootless, as a service",
     "/user.slice/user-1000.slice/user@1000.service/app.slice/podman.service/libpod-A", "podman", "A", ""},
    {"Docker, rootless, without controllers", "/user.slice/user-1000.slice/user@1000.service/user.slice/runc-A.scope",
     "runc", "A", ""},
    {"crun's own", "/user.slice/user-1000.slice/user@1000.service/user.slice/crun-A.scope", "crun", "A", ""},
    {"Docker, rootless", "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-A.scope", "docker", "A", ""},
    {"podman's pod, systemd", "/machine.slice/machine-libpod_pod_B.slice/libpod-A.scope", "podman", "A", ""},
    {"podman's pod, cgroupfs", "/libpod_parent/B/libpod-A", "podman", "A", ""},
    {"Docker, --cgroup-parent", "/jobs/nightly/A", "", "A", ""},
    {"Docker, --cgroup-parent, systemd", "/jobs.slice/docker-A.scope", "docker", "A", ""},
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
           "/lxc.payload.",  // of no container
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
    const char* user = "";
    const char* machine = "";
  };
  constexpr Row rows[] = {
      {"/system.slice/nginx.service", "/system.slice/nginx.service", "nginx.service"},
      {"/system.slice/nginx.service/workers", "/system.slice/nginx.service", "nginx.service"},
      {"/system.slice/system-getty.slice/getty@tty1.service", "/system.slice/system-getty.slice/getty@tty1.service",
       "getty@tty1.service"},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/web.service",
       "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", "web.service", "1000"},
      {"/machine.slice/machine-vm\\x2d1.scope/payload/system.slice/nginx.service",
       "/machine.slice/machine-vm\\x2d1.scope/payload/system.slice/nginx.service", "nginx.service", "", "vm-1"},
      {"/machine.slice/systemd-nspawn@vm-2.service/payload/user.slice/user-7.slice/user@7.service/app.slice/x.service",
       "/machine.slice/systemd-nspawn@vm-2.service/payload/user.slice/user-7.slice/user@7.service/app.slice/x.service",
       "x.service", "7", "vm-2"},
      // Delegated to whom it runs as, who may make any cgroup below.
      {"/system.slice/ci.service/docker/A", "/system.slice/ci.service", "ci.service"},
      {"/system.slice/ci.service/kubepods.slice/kubepods-podU.slice/cri-containerd-A.scope", "/system.slice/ci.service",
       "ci.service"},
      {"/user.slice/user-1000.slice/user@1000.service/app.slice/web.service/cri-containerd-A.scope",
       "/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", "web.service", "1000"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path);
    const CgroupIdentity found = identify(expand_ids(row.path));
    CHECK(found.kind == Kind::unit);
    CHECK(found.path == row.own);
    CHECK(found.unit == row.unit);
    CHECK(found.user == row.user);
    CHECK(found.machine == row.machine);
    CHECK(found.container_id.empty());
  }
}

TEST_CASE("sessions, init and the root are what somebody runs there") {
  for (const char* path : {"/", "", "/user.slice/user-1000.slice/session-3.scope",
                           "/user.slice/user-0.slice/session-c1.scope", "/user.slice/user-1000.slice/user@1000.service",
                           "/user.slice/user-1000.slice/user@1000.service/app.slice/app-terminal-7.scope"}) {
    CAPTURE(path);
    CHECK(identify(path).kind == Kind::session);
    CHECK(identify(path).path == path);
  }
}

TEST_CASE("managers, socket and mount units are no servers") {
  for (const char* path : {"/init.scope", "/user.slice/user-1000.slice/user@1000.service/init.scope",
                           "/system.slice/ssh.socket", "/system.slice/tmp.mount", "/system.slice/proc.automount",
                           "/machine.slice/machine-vm.scope/payload/init.scope"}) {
    CAPTURE(path);
    CHECK(identify(path).kind == Kind::plumbing);
  }
}

TEST_CASE("who may make a cgroup cannot make it another's container") {
  using Place = CgroupIdentity::Place;
  struct Row {
    const char* path;
    Kind kind;
    Place place = Place::elsewhere;
  };
  const std::string user = "/user.slice/user-1000.slice/user@1000.service";
  for (const auto& [below, kind, place] : {
           Row{"/app.slice/cri-containerd-A.scope", Kind::session},
           Row{"/kubepods.slice/kubepods-podU.slice/cri-containerd-A.scope", Kind::session},
           Row{"/kubepods/podD/A", Kind::session},
           Row{"/docker/A", Kind::session},
           Row{"/crio-A.scope", Kind::session},
           Row{"/lxc.payload.web", Kind::session},
           Row{"/app.slice/kubepods-podU.slice:cri-containerd:A", Kind::session},
           Row{"/user.slice/libpod-A.scope", Kind::container, Place::users},
           Row{"/user.slice/libpod-A.scope/kubepods/podD/B", Kind::container, Place::users},
       }) {
    const CgroupIdentity found = identify(user + expand(below));
    CAPTURE(below);
    CHECK(found.kind == kind);
    CHECK(found.place == place);
    CHECK(found.user == "1000");
    CHECK(found.pod_uid.empty());
    CHECK(found.container_id == (kind == Kind::container ? hex('a') : ""));
  }
  for (const auto& [path, kind, place] : {
           Row{"/kubepods.slice/kubepods-podU.slice/cri-containerd-A.scope", Kind::container, Place::runtime_root},
           Row{"/tests/kubepods/podD/A", Kind::container, Place::runtime_root},
           Row{"/docker/A", Kind::container, Place::runtime_root},
           Row{"/system.slice/docker-A.scope", Kind::container, Place::runtime_root},
           Row{"/system.slice/containerd.service/kubepods-podU.slice:cri-containerd:A", Kind::container,
               Place::runtime_root},
           Row{"/machine.slice/libpod-A.scope", Kind::container, Place::runtime_root},
           Row{"/libpod_parent/libpod-A", Kind::container, Place::runtime_root},
           Row{"/jobs/A", Kind::container, Place::elsewhere},
           Row{"/docker/A/docker/B", Kind::container, Place::inside_container},
           Row{"/machine.slice/machine-vm.scope/payload/docker/A", Kind::container, Place::inside_container},
           Row{"/user.slice/user-1000.slice/session-3.scope/docker/A", Kind::session},
           Row{"/init.scope/docker/A", Kind::plumbing},
       }) {
    CAPTURE(path);
    CHECK(identify(expand(path)).kind == kind);
    CHECK(identify(expand(path)).place == place);
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
                                       "/machine.slice/machine-\\x2d\\x2.scope",
                                       "/user@.service/x",
                                       "/user@1x.service",
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
