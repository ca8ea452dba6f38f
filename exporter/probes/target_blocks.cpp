#include "probes/target_blocks.h"

#include <bpf/bpf.h>

#include <utility>
#include <vector>

namespace tacho::probes {

Result<void> TargetBlocks::add(std::uint32_t index) {
  auto created = kernel::create_mappable_array(name_, shard_size_, shards_);
  if (!created) {
    return std::unexpected(created.error());
  }
  auto memory = kernel::MappedArray::open(created->get(), shard_size_, shards_, kernel::MappedArray::Access::read);
  if (!memory) {
    return std::unexpected(memory.error());
  }
  blocks_.insert_or_assign(index, std::move(*memory));
  added_.insert_or_assign(index, std::move(*created));
  removed_.erase(index);
  return {};
}

void TargetBlocks::remove(std::uint32_t index) {
  blocks_.erase(index);
  if (added_.erase(index) == 0) {
    removed_.insert(index);
  }
}

Result<void> TargetBlocks::flush() {
  std::vector<std::uint32_t> indices(removed_.begin(), removed_.end());
  auto count = static_cast<__u32>(indices.size());
  if (count > 0 && bpf_map_delete_batch(outer_, indices.data(), &count, nullptr) != 0) {
    for (const std::uint32_t index : indices) {
      bpf_map_delete_elem(outer_, &index);
    }
  }
  removed_.clear();
  // The descriptors may go afterwards: the array of maps and the mappings keep the blocks.
  const auto added = std::exchange(added_, {});
  indices.clear();
  std::vector<int> descriptors;
  for (const auto& [index, descriptor] : added) {
    indices.push_back(index);
    descriptors.push_back(descriptor.get());
  }
  count = static_cast<__u32>(indices.size());
  if (count == 0 || bpf_map_update_batch(outer_, indices.data(), descriptors.data(), &count, nullptr) == 0) {
    return {};
  }
  // Not every kernel has batches for this kind of map.
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (bpf_map_update_elem(outer_, &indices[i], &descriptors[i], BPF_ANY) != 0) {
      return fail_errno("cannot put accumulators into " + name_);
    }
  }
  return {};
}

}  // namespace tacho::probes
