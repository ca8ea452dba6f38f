#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bpf/socket.h"
#include "kernel/map.h"
#include "kernel/mapped_array.h"
#include "probes/peers.h"
#include "probes/sample.h"
#include "probes/target_blocks.h"

namespace tacho::probes {

/// A target's block of slots, one per peer.
class DependencySlots {
 public:
  explicit DependencySlots(kernel::MappedArray block) : block_(std::move(block)) {}

  /// The dependencies that have a name or were called, by slot, up to `asked`, the highest slot that was given out:
  /// reading further slots would take memory here.
  /// @param names nullptr: without the peers' names
  [[nodiscard]] std::vector<Dependency> calls(std::uint32_t asked, const PeerNames* names) const;
  /// The peer of a slot; nullptr if there is none.
  [[nodiscard]] const peer_address* peer(std::uint32_t slot) const;

 private:
  kernel::MappedArray block_;
};

/// The dependencies of the targets: a block of slots for each target, and the table from peers to slots.
class Dependencies {
 public:
  /// @param max_peers of a target that have slots of their own; slot 0 is all others
  static Result<Dependencies> open(const kernel::BpfObject& object, std::uint32_t max_peers);

  Result<DependencySlots> add(std::uint32_t index);
  void remove(std::uint32_t index);
  /// As that of TargetBlocks.
  Result<void> flush() { return blocks_.flush(); }
  /// Frees the slots of removed targets' peers: an index may be used again, and room is limited.
  void forget_removed();

 private:
  using Slots = kernel::Map<peer_key, std::uint32_t>;

  Dependencies(Slots slots, TargetBlocks blocks) : slots_(std::move(slots)), blocks_(std::move(blocks)) {}

  Slots slots_;
  TargetBlocks blocks_;
  std::set<std::uint32_t> removed_;  // whose slots are not forgotten yet
};

}  // namespace tacho::probes
