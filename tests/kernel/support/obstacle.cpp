#include "kernel/support/obstacle.h"

#include <unistd.h>

#include "kernel/bpf_object.h"
#include "kernel/features.h"
#include "targets/cgroup_tree.h"

namespace tacho::kernel_test {

std::string obstacle() {
  for (const std::string& missing : kernel::missing_prerequisites("")) {
    return missing;
  }
  if (const auto map = kernel::create_mappable_array("probe", sizeof(long), 1); !map) {
    return map.error().message;
  }
  const auto mount = targets::find_cgroup_mount("/proc/self/mountinfo");
  if (!mount) {
    return mount.error().message;
  }
  if (::access(mount->c_str(), W_OK) != 0) {
    return "no cgroup can be made below " + *mount;
  }
  return {};
}

}  // namespace tacho::kernel_test
