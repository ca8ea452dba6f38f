#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/result.h"

namespace tacho::kernel {

/// Puts arrays, by their descriptors, into an array of maps. The kernel waits until no program uses the previous
/// arrays, some 20 ms: once for all of them since Linux 6.8, before that once for each; these waits then run in
/// parallel.
Result<void> update_outer_map(int outer, std::span<const std::pair<std::uint32_t, int>> entries);

}  // namespace tacho::kernel
