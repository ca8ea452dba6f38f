#include "kernel/map_keys.h"

#include <bpf/bpf.h>

namespace tacho::kernel {

Result<std::uint64_t> for_each_key(int map, const std::function<void(std::span<const std::byte>)>& visit) {
  bpf_map_info info{};
  __u32 length = sizeof(info);
  if (map < 0 || bpf_obj_get_info_by_fd(map, &info, &length) != 0) {
    return fail_errno("no information about a map");
  }
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

}  // namespace tacho::kernel
