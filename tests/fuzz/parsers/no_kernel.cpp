// What stands in the same files as the parsers and asks the kernel: it is not called here, and no BPF object has to be
// compiled for it.
#include <cstdlib>

#include "kernel/bpf_object.h"
#include "kernel/iterator.h"
#include "kernel/map.h"
#include "targets/target_maps.h"

namespace tacho {

const bpf_program* kernel::BpfObject::program(std::string_view /*program_name*/) const {
  std::abort();
}

Result<void> kernel::ObjectSetup::set_max_entries(std::string_view /*map*/, std::uint32_t /*entries*/) {
  std::abort();
}

Result<kernel::detail::UntypedMap> kernel::detail::UntypedMap::open(const BpfObject& /*object*/,
                                                                    std::string_view /*name*/, std::size_t /*key_size*/,
                                                                    std::size_t /*value_size*/) {
  std::abort();
}

Result<void> kernel::detail::UntypedMap::put(const void* /*key*/, const void* /*value*/) const {
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
