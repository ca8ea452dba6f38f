// Names of cgroups, which whoever may make one chooses, and the files in them.
#include "targets/cgroup_path.h"

#include <string>

#include "fuzzer.h"
#include "probes/cpu_limits.h"
#include "targets/workload.h"

using namespace tacho;
using fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const std::string path = "/" + std::string(text);
  const targets::CgroupIdentity identity = targets::identify(path);
  using Kind = targets::CgroupIdentity::Kind;
  require(path.starts_with(identity.path), "what it belongs to is the path's beginning");
  require((identity.kind == Kind::container) == !identity.container_id.empty(), "a container has an id");
  require(path.find(identity.container_id) != std::string::npos, "an id stands in the path");
  require(identity.kind != Kind::unit || !identity.unit.empty(), "a unit has a name");
  if (identity.place == targets::CgroupIdentity::Place::users && !identity.container_id.empty()) {
    require(!identity.user.empty(), "a user's container has an owner");
  }
  // The container itself, and what is below it, are the same container.
  if (identity.kind == Kind::container) {
    const auto again = targets::identify(identity.path);
    require(again.kind == Kind::container && again.container_id == identity.container_id,
            "a container's path is its own");
  }
  targets::is_monitor(text);
  const std::size_t cut = text.size() / 2;
  const targets::Workload workload = targets::workload_of(text.substr(0, cut), identity.pod_uid, text.substr(cut));
  require(workload.name.empty() == workload.kind.empty(), "a workload has a name and a kind");
  const auto cores = probes::parse_cpu_max(text);
  require(!cores || *cores > 0, "a quota is more than nothing");
  const auto quota = probes::parse_cfs_quota(text.substr(0, cut), text.substr(cut));
  require(!quota || *quota > 0, "a quota is more than nothing");
  const auto cpus = probes::parse_cpu_list(text);
  require(!cpus || *cpus > 0, "a list names a CPU");
  probes::parse_throttled(text);
  return 0;
}
