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

bool UntypedMap::erase(const void* key) const {
  return bpf_map_delete_elem(descriptor_, key) == 0;
}

}  // namespace tacho::kernel::detail
