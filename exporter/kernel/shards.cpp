#include "kernel/shards.h"

#include <algorithm>
#include <bit>

namespace tacho::kernel {

ShardLayout shard_layout(unsigned possible_cpus) {
  constexpr unsigned kMaxShards = 16;
  ShardLayout layout;
  layout.process_shards = std::bit_ceil(std::max(1U, std::min(possible_cpus, kMaxShards)));
  layout.exclusive = layout.process_shards >= possible_cpus;
  return layout;
}

Result<void> set_shards(ObjectSetup& setup, const ShardLayout& layout, bool preemptible) {
  if (auto done = setup.set_constant("shard_mask", layout.process_shards - 1); !done) {
    return done;
  }
  return setup.set_constant("exclusive_shards", static_cast<std::uint32_t>(layout.exclusive && !preemptible));
}

}  // namespace tacho::kernel
