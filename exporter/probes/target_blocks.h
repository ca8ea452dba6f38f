#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kernel/bpf_object.h"
#include "kernel/mapped_array.h"

namespace tacho::probes {

/// The accumulators of a probe's targets: one mappable array of shards per target, put into the probe's array of maps
/// and mapped into this process. Memory in the kernel follows the number of targets.
class TargetBlocks {
 public:
  /// @param outer descriptor of the array of maps
  TargetBlocks(std::string name, int outer, std::size_t shard_size, std::uint32_t shards)
      : name_(std::move(name)), outer_(outer), shard_size_(shard_size), shards_(shards) {}

  /// Makes a zeroed block for the index; the programs see it after the next flush().
  Result<void> add(std::uint32_t index);
  /// Unmaps the block; the programs lose it with the next flush().
  void remove(std::uint32_t index);
  /// Hands the additions and removals since the last call to the kernel, all at once, because that takes some 20 ms.
  /// May run while other threads read blocks. Failed ones are tried again by the next call.
  Result<void> flush();

  [[nodiscard]] std::uint32_t shards() const { return shards_; }
  /// nullptr if the index has no block.
  template <class Shard>
  [[nodiscard]] const Shard* shard(std::uint32_t index, std::uint32_t number) const {
    const auto block = blocks_.find(index);
    return block == blocks_.end() ? nullptr : &block->second.at<Shard>(number);
  }

 private:
  std::string name_;
  int outer_;
  std::size_t shard_size_;
  std::uint32_t shards_;
  std::map<std::uint32_t, kernel::MappedArray> blocks_;
  std::map<std::uint32_t, UniqueFd> added_;  // by index, not flushed yet
  std::set<std::uint32_t> removed_;          // not flushed yet
  // Replaces every removed block: entries of an array of maps can only be removed one by one.
  UniqueFd nobody_;
};

}  // namespace tacho::probes
