#include "targets/self.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "kernel/iterator.h"
#include "targets/cgroup_path.h"

namespace tacho::targets {
namespace {

std::string_view parent_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string_view::npos ? "/" : path.substr(0, slash);
}

bool is_below(std::string_view path, std::string_view top) {
  return top == "/" || (path.starts_with(top) && path.size() > top.size() && path[top.size()] == '/');
}

std::string own_container(std::string_view own_path) {
  CgroupIdentity identity = identify(own_path);
  return identity.kind == CgroupIdentity::Kind::container ? std::move(identity.path) : std::string(own_path);
}

}  // namespace

std::string pod_cgroup(std::string_view own_path) {
  return std::string(parent_of(own_container(own_path)));
}

bool is_container_of_own_pod(std::string_view path, std::string_view own_path) {
  return path != "/" && parent_of(path) == pod_cgroup(own_path) && path != own_container(own_path) &&
         !is_monitor(path.substr(path.rfind('/') + 1));
}

bool is_around_self(std::string_view path, std::string_view own_path) {
  return is_below(path, pod_cgroup(own_path));
}

Result<OwnCgroups> own_cgroups_of(std::span<const own_cgroup> records) {
  OwnCgroups own;
  std::map<std::uint64_t, std::string> path;  // by id
  const auto name_of = [](const own_cgroup& record) {
    return std::string(record.name, ::strnlen(record.name, sizeof(record.name)));
  };
  const auto add = [&own, &path, &name_of](const own_cgroup& record) {
    const auto parent = path.find(record.parent);
    if (record.parent != 0 && parent == path.end()) {
      return;  // removed while it was looked at
    }
    std::string full = record.parent == 0 ? "/" : (parent->second == "/" ? "" : parent->second) + "/" + name_of(record);
    path[record.id] = full;
    own.cgroups[std::move(full)] = record.id;
  };
  const auto root = std::ranges::find(records, 0U, &own_cgroup::parent);
  if (root == records.end()) {
    return fail("the kernel does not tell tacho's own cgroup", ENOENT);
  }
  // What comes first leads from tacho up to the root.
  for (auto at = root + 1; at != records.begin(); --at) {
    add(*(at - 1));
  }
  std::for_each(root + 1, records.end(), add);
  own.path = path[records.front().id];
  if (own.path.empty()) {
    return fail("what the kernel tells of the cgroups above tacho's own does not lead to the root", ENOENT);
  }
  if (own.path == "/") {
    return fail(
        "tacho is in the root cgroup of v2, so nothing tells its pod or cgroup apart: `self` needs a container "
        "runtime that uses cgroup v2; select by `cgroup` or `container`",
        ENOTSUP);
  }
  return own;
}

Result<OwnCgroups> find_own_cgroups(const kernel::BpfObject& object, TargetMaps& maps, bool pod) {
  const bpf_program* const program = object.program("list_own_cgroups");
  if (program == nullptr) {
    return fail(
        "the kernel refuses the program that tells tacho's own cgroup: `self` cannot be used, select by `cgroup`",
        ENOTSUP);
  }
  // First the way up, then what is below the pod's cgroup, which only its path tells.
  maps.set_self_top(0);
  const auto up = kernel::read_records<own_cgroup>(program);
  if (!up) {
    return std::unexpected(up.error());
  }
  const auto own = own_cgroups_of(*up);
  if (!own) {
    return own;
  }
  const std::string top = pod ? pod_cgroup(own->path) : own->path;
  if (top == "/") {
    return fail("tacho's own cgroup " + own->path +
                    " stands in the root: there is no pod around it, `self: pod` cannot be used",
                ENOTSUP);
  }
  maps.set_self_top(own->cgroups.at(top));
  const auto all = kernel::read_records<own_cgroup>(program);
  if (!all) {
    return std::unexpected(all.error());
  }
  return own_cgroups_of(*all);
}

}  // namespace tacho::targets
