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

/// Makes the blocks of a probe's targets: one mappable array of shards per target, put into the probe's array of maps
/// and mapped into this process. Memory in the kernel follows the number of targets. A block is never used for another
/// target, and a reader that holds it keeps it: it can be read as long as one does.
class TargetBlocks {
 public:
  /// @param outer descriptor of the array of maps
  TargetBlocks(std::string name, int outer, std::size_t shard_size, std::uint32_t shards)
      : name_(std::move(name)), outer_(outer), shard_size_(shard_size), shards_(shards) {}

  /// Makes a zeroed block for the index; the programs see it after the next flush().
  Result<kernel::MappedArray> add(std::uint32_t index);
  /// The programs lose the index's block with the next flush().
  void remove(std::uint32_t index);
  /// Hands the additions and removals since the last call to the kernel, all at once, because that takes some 20 ms.
  /// May run while other threads read blocks. Failed ones are tried again by the next call.
  Result<void> flush();

 private:
  std::string name_;
  int outer_;
  std::size_t shard_size_;
  std::uint32_t shards_;
  std::map<std::uint32_t, UniqueFd> added_;  // by index, not flushed yet
  std::set<std::uint32_t> removed_;          // not flushed yet
  // Replaces every removed block: entries of an array of maps can only be removed one by one.
  UniqueFd nobody_;
};

}  // namespace tacho::probes
