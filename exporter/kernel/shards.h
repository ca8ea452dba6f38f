#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernel/bpf_object.h"

namespace tacho::kernel {

/// The split of a target's accumulators over CPUs (bpf/lib/accumulate.bpf.h): shard 0 is for every context, the others
/// for hooks in process context.
struct ShardLayout {
  std::uint32_t process_shards = 1;  ///< a power of two
  bool exclusive = false;            ///< one per CPU: plain additions do

  [[nodiscard]] std::uint32_t shards() const { return 1 + process_shards; }
};

/// One shard per CPU on machines of up to 16 CPUs, 16 beyond, so that a target's memory stays bounded.
/// @param possible_cpus CPU numbers are below this
ShardLayout shard_layout(unsigned possible_cpus);

/// Tells an object's programs about the layout.
/// @param preemptible a hook runs with preemption enabled (fentry), where plain additions can be interrupted
Result<void> set_shards(ObjectSetup& setup, const ShardLayout& layout, bool preemptible);

}  // namespace tacho::kernel
