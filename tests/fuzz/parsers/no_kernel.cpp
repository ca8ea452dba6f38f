// What stands in the same files as the parsers and asks the kernel: it is not called here, and no BPF object has to be
// compiled for it.
#include <bpf/bpf.h>

#include <cstdlib>

#include "kernel/bpf_object.h"
#include "kernel/iterator.h"
#include "targets/target_maps.h"

int bpf_map_update_elem(int /*fd*/, const void* /*key*/, const void* /*value*/, __u64 /*flags*/) {
  std::abort();
}

namespace tacho {

const bpf_program* kernel::BpfObject::program(std::string_view /*program_name*/) const {
  std::abort();
}

Result<void> kernel::ObjectSetup::set_max_entries(std::string_view /*map*/, std::uint32_t /*entries*/) {
  std::abort();
}

Result<void> kernel::run_iterator(const bpf_program* /*program*/,
                                  const std::function<void(std::span<const std::byte>)>& /*sink*/) {
  std::abort();
}

void targets::TargetMaps::set_self_top(std::uint64_t /*cgroup*/) {
  std::abort();
}

}  // namespace tacho
