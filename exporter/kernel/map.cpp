#include "kernel/map.h"

#include <bpf/bpf.h>

#include <cerrno>

namespace tacho::kernel::detail {

Result<UntypedMap> UntypedMap::open(const BpfObject& object, std::string_view name, std::size_t key_size,
                                    std::size_t value_size) {
  UntypedMap map;
  map.name_ = std::string(object.name()) + "." + std::string(name);
  map.descriptor_ = object.map(name);
  bpf_map_info info{};
  __u32 length = sizeof(info);
  if (map.descriptor_ < 0 || bpf_obj_get_info_by_fd(map.descriptor_, &info, &length) != 0) {
    return fail_errno("there is no map " + map.name_, map.descriptor_ < 0 ? ENOENT : errno);
  }
  if (info.key_size != key_size || info.value_size != value_size) {
    return fail("map " + map.name_ + " has keys of " + std::to_string(info.key_size) + " bytes and values of " +
                    std::to_string(info.value_size) + ", not of " + std::to_string(key_size) + " and " +
                    std::to_string(value_size),
                EINVAL);
  }
  return map;
}

bool UntypedMap::find(const void* key, void* value) const {
  return bpf_map_lookup_elem(descriptor_, key, value) == 0;
}

Result<void> UntypedMap::put(const void* key, const void* value) const {
  return bpf_map_update_elem(descriptor_, key, value, BPF_ANY) == 0 ? Result<void>() : fail_errno("map " + name_);
}

Result<void> UntypedMap::put_all(const void* keys, std::size_t key_size, const void* values, std::size_t value_size,
                                 std::size_t count) const {
  auto done = static_cast<__u32>(count);
  if (count == 0 || bpf_map_update_batch(descriptor_, keys, values, &done, nullptr) == 0) {
    return {};
  }
  // Which of them the batch has taken does not matter: they are put again.
  for (std::size_t i = 0; i < count; ++i) {
    if (auto put_one = put(static_cast<const std::byte*>(keys) + i * key_size,
                           static_cast<const std::byte*>(values) + i * value_size);
        !put_one) {
      return put_one;
    }
  }
  return {};
}

bool UntypedMap::erase(const void* key) const {
  return bpf_map_delete_elem(descriptor_, key) == 0;
}

}  // namespace tacho::kernel::detail
