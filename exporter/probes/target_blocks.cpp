#include "probes/target_blocks.h"

#include <utility>
#include <vector>

#include "kernel/outer_map.h"

namespace tacho::probes {

Result<kernel::MappedArray> TargetBlocks::add(std::uint32_t index) {
  auto created = kernel::create_mappable_array(name_, shard_size_, shards_);
  if (!created) {
    return std::unexpected(created.error());
  }
  auto memory = kernel::MappedArray::open(created->get(), shard_size_, shards_, kernel::MappedArray::Access::read);
  if (memory) {
    added_.insert_or_assign(index, std::move(*created));
    removed_.erase(index);
  }
  return memory;
}

void TargetBlocks::remove(std::uint32_t index) {
  // Also if the kernel was not told of the block: it may still have the one of the target before.
  added_.erase(index);
  removed_.insert(index);
}

Result<void> TargetBlocks::flush() {
  if (!removed_.empty() && !nobody_) {
    auto created = kernel::create_mappable_array(name_, shard_size_, shards_);
    if (!created) {
      return std::unexpected(created.error());
    }
    nobody_ = std::move(*created);
  }
  std::vector<std::pair<std::uint32_t, int>> entries;
  entries.reserve(removed_.size() + added_.size());
  for (const std::uint32_t index : removed_) {
    entries.emplace_back(index, nobody_.get());
  }
  for (const auto& [index, descriptor] : added_) {
    entries.emplace_back(index, descriptor.get());
  }
  if (auto done = kernel::update_outer_map(outer_, entries); !done) {
    return std::unexpected(done.error().within(name_));
  }
  // The array of maps and the mappings keep the blocks.
  removed_.clear();
  added_.clear();
  return {};
}

}  // namespace tacho::probes
