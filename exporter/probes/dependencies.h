#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bpf/socket.h"
#include "kernel/map.h"
#include "probes/peers.h"
#include "probes/sample.h"
#include "probes/target_blocks.h"

namespace tacho::probes {

/// What the targets call: a block of slots for each target, one a peer, and the table of which peer has which slot.
class Dependencies {
 public:
  /// @param max_peers of a target that are told apart; slot 0 is all others
  static Result<Dependencies> open(const kernel::BpfObject& object, std::uint32_t max_peers, PeerNames names);

  Result<void> add(std::uint32_t index) { return blocks_.add(index); }
  void remove(std::uint32_t index);
  /// As that of TargetBlocks.
  Result<void> flush() { return blocks_.flush(); }
  /// Frees the slots of removed targets' peers: an index may be used again, and room is limited.
  void forget_removed();

  /// Those that have a name or were called, by slot. Slots up to `asked`, the highest that was given out: what was not
  /// asked for need not be touched, and takes no memory here.
  /// @param names whether their peers' names are told
  [[nodiscard]] std::vector<Dependency> calls(std::uint32_t index, std::uint32_t asked, bool names) const;
  /// Who has the slot; nullptr if there is none.
  [[nodiscard]] const peer_address* peer(std::uint32_t index, std::uint32_t slot) const;
  [[nodiscard]] const PeerNames& names() const { return names_; }

 private:
  using Slots = kernel::Map<peer_key, std::uint32_t>;

  Dependencies(Slots slots, TargetBlocks blocks, PeerNames names)
      : slots_(std::move(slots)), blocks_(std::move(blocks)), names_(std::move(names)) {}

  Slots slots_;
  TargetBlocks blocks_;
  PeerNames names_;
  std::set<std::uint32_t> removed_;  // whose slots are not forgotten yet
};

}  // namespace tacho::probes
