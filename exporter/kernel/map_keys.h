#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::kernel {

/// Calls `visit` with the key of each entry of a map, in the map's own order. Key sizes come from the map. Of hashes
/// hundreds of keys take one call. Elsewhere, and where values are large, each takes one, and the walk ends after
/// `max_entries` keys, whatever changes the map meanwhile: where the current key is deleted, the kernel begins again
/// with the first one (bpf_map_get_next_key), so one key may be visited twice and another not at all.
/// @return how many keys were visited; an error if the kernel has no information about the map
Result<std::uint64_t> for_each_key(int map, const std::function<void(std::span<const std::byte>)>& visit);

/// All keys of a map whose keys are `Key`s; an error where they have another size.
template <class Key>
Result<std::vector<Key>> keys_of(int map) {
  std::vector<Key> keys;
  bool fits = true;
  const auto walked = for_each_key(map, [&](std::span<const std::byte> bytes) {
    fits = fits && bytes.size() == sizeof(Key);
    if (fits) {
      std::memcpy(&keys.emplace_back(), bytes.data(), sizeof(Key));
    }
  });
  if (!walked) {
    return std::unexpected(walked.error());
  }
  if (!fits) {
    return fail("keys of a map have another size than " + std::to_string(sizeof(Key)) + " bytes");
  }
  return keys;
}

}  // namespace tacho::kernel
