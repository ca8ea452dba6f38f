#include "probes/target_blocks.h"

#include <bpf/bpf.h>

#include "base/unique_fd.h"

namespace tacho::probes {

Result<void> TargetBlocks::add(std::uint32_t index) {
  // The descriptor may go: the array of maps and the mapping keep the block.
  auto created = kernel::create_mappable_array(name_, shard_size_, shards_);
  if (!created) {
    return std::unexpected(created.error());
  }
  const UniqueFd block = std::move(*created);
  auto memory = kernel::MappedArray::open(block.get(), shard_size_, shards_, kernel::MappedArray::Access::read);
  if (!memory) {
    return std::unexpected(memory.error());
  }
  const int descriptor = block.get();
  if (bpf_map_update_elem(outer_, &index, &descriptor, BPF_ANY) != 0) {
    return fail_errno("cannot put accumulators into " + name_);
  }
  blocks_.insert_or_assign(index, std::move(*memory));
  return {};
}

void TargetBlocks::remove(std::uint32_t index) {
  bpf_map_delete_elem(outer_, &index);
  blocks_.erase(index);
}

}  // namespace tacho::probes
