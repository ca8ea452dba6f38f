#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "kernel/bpf_object.h"
#include "kernel/cpus.h"

namespace tacho::kernel {

/// The split of a target's accumulators over CPUs (bpf/lib/accumulate.bpf.h): shard 0 is for every context, the others
/// for hooks in process context.
struct ShardLayout {
  std::uint32_t process_shards = 1;
  bool exclusive = false;                   ///< no two CPUs can ever share one: plain additions do
  std::array<std::uint8_t, 1024> of_cpu{};  ///< the shard of each CPU, by its number modulo the size

  [[nodiscard]] std::uint32_t shards() const { return 1 + process_shards; }
};

/// A shard for each CPU that is online, 16 at most, so that a target's memory stays bounded. Beyond, CPUs that share a
/// cache share shards. A CPU that comes online later shares one with others, unless the machine has so few that each
/// has its own beforehand.
ShardLayout shard_layout(const Cpus& cpus);

/// Tells an object's programs about the layout.
/// @param preemptible a hook runs with preemption enabled (fentry), where plain additions can be interrupted
void set_shards(ObjectSetup& setup, const ShardLayout& layout, bool preemptible);

}  // namespace tacho::kernel
