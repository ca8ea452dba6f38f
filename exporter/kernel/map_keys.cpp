#include "kernel/map_keys.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <optional>

namespace tacho::kernel {
namespace {

using Visit = std::function<void(std::span<const std::byte>)>;

/// Larger values take longer to copy than their keys to ask for one by one.
constexpr std::size_t kLargestValue = 1024;
constexpr std::size_t kBatchBytes = 1 << 16;

/// Hash maps hand out hundreds of entries a call (Linux 5.6), bucket by bucket, so none comes twice. Nothing if the
/// kernel has no batches for the map.
std::optional<std::uint64_t> for_each_in_batches(int map, const bpf_map_info& info, const Visit& visit) {
  std::size_t capacity = std::max<std::size_t>(kBatchBytes / (info.key_size + info.value_size), 64);
  std::vector<std::byte> keys;
  std::vector<std::byte> values;
  // A place in the map: the number of a bucket, or a key.
  std::vector<std::byte> place(std::max<std::size_t>(info.key_size, sizeof(std::uint64_t)));
  std::uint64_t visited = 0;
  for (bool begun = false;;) {
    keys.resize(capacity * info.key_size);
    values.resize(capacity * info.value_size);
    auto count = static_cast<__u32>(capacity);
    const int status = bpf_map_lookup_batch(map, begun ? place.data() : nullptr, place.data(), keys.data(),
                                            values.data(), &count, nullptr);
    if (status != 0 && errno == ENOSPC && capacity < info.max_entries) {
      capacity *= 2;  // a bucket has more entries than that
      continue;
    }
    if (status != 0 && errno != ENOENT) {
      return begun ? std::optional(visited) : std::nullopt;
    }
    for (std::size_t i = 0; i < count; ++i) {
      visit(std::span(keys).subspan(i * info.key_size, info.key_size));
    }
    visited += count;
    if (status != 0) {
      return visited;
    }
    begun = true;
  }
}

std::uint64_t for_each_one_by_one(int map, const bpf_map_info& info, const Visit& visit) {
  std::vector<std::byte> key(info.key_size);
  std::vector<std::byte> next(info.key_size);
  const void* current = nullptr;
  std::uint64_t visited = 0;
  for (; visited < info.max_entries && bpf_map_get_next_key(map, current, next.data()) == 0; ++visited) {
    key.swap(next);
    current = key.data();
    visit(key);
  }
  return visited;
}

}  // namespace

Result<std::uint64_t> for_each_key(int map, const Visit& visit) {
  bpf_map_info info{};
  __u32 length = sizeof(info);
  if (map < 0 || bpf_obj_get_info_by_fd(map, &info, &length) != 0) {
    return fail_errno("no information about a map");
  }
  if (info.type == BPF_MAP_TYPE_HASH && info.value_size <= kLargestValue) {
    if (const auto visited = for_each_in_batches(map, info, visit)) {
      return *visited;
    }
  }
  return for_each_one_by_one(map, info, visit);
}

}  // namespace tacho::kernel
