#include "probes/dependencies.h"

#include <spdlog/spdlog.h>

#include "metrics/buckets.h"
#include "probes/bracket.h"
#include "probes/histogram_decode.h"

namespace tacho::probes {

Result<Dependencies> Dependencies::open(const kernel::BpfObject& object, std::uint32_t max_peers) {
  auto slots = Slots::open(object, "dependency_slots");
  if (!slots) {
    return std::unexpected(slots.error());
  }
  return Dependencies(std::move(*slots),
                      TargetBlocks("dependency", object.map("dependency_blocks"), sizeof(dependency), max_peers + 1));
}

Result<DependencySlots> Dependencies::add(std::uint32_t index) {
  auto block = blocks_.add(index);
  if (!block) {
    return std::unexpected(block.error());
  }
  return DependencySlots(std::move(*block));
}

void Dependencies::remove(std::uint32_t index) {
  blocks_.remove(index);
  removed_.insert(index);
}

void Dependencies::forget_removed() {
  if (removed_.empty()) {
    return;
  }
  const auto keys = slots_.keys();
  if (!keys) {
    spdlog::error("peers of removed targets keep their places: {}", keys.error().message);
    return;
  }
  for (const peer_key& key : *keys) {
    if (removed_.contains(key.index)) {
      slots_.erase(key);
    }
  }
  removed_.clear();
}

std::vector<Dependency> DependencySlots::calls(std::uint32_t asked, const PeerNames* names) const {
  std::vector<Dependency> all;
  for (std::uint32_t slot = 0; slot < block_.size() && slot <= asked; ++slot) {
    const auto& entry = block_.at<dependency>(slot);
    Dependency calls{.slot = slot, .peer = {}, .duration = {}, .in_line_ns = 0};
    add_histogram(calls.duration, entry.duration);
    calls.in_line_ns = load(entry.in_line_ns);
    // A slot is named when its first connection is made; slot 0 has no name and is shown once it is used.
    const bool named = __atomic_load_n(&entry.peer.family, __ATOMIC_ACQUIRE) != 0;
    if (named || metrics::total(calls.duration) > 0) {
      calls.peer = names != nullptr ? names->of(entry.peer) : std::string();
      all.push_back(std::move(calls));
    }
  }
  return all;
}

const peer_address* DependencySlots::peer(std::uint32_t slot) const {
  return slot < block_.size() ? &block_.at<dependency>(slot).peer : nullptr;
}

}  // namespace tacho::probes
