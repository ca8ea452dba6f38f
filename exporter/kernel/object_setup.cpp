#include "kernel/object_setup.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include <algorithm>

namespace tacho::kernel {

void ObjectSetup::keep(const Result<void>& setting) {
  if (done_) {
    done_ = setting;
  }
}

void ObjectSetup::keep(int status, std::string_view what, std::string_view of) {
  if (status != 0) {
    keep(fail_errno(std::string(what) + ' ' + std::string(of), -status));
  }
}

bpf_map* ObjectSetup::find(std::string_view map) {
  bpf_map* found = bpf_object__find_map_by_name(object_, std::string(map).c_str());
  if (found == nullptr) {
    keep(fail("the BPF object has no map " + std::string(map)));
  }
  return found;
}

Result<void> ObjectSetup::try_constant(std::string_view variable, std::span<const std::byte> value) {
  const btf* types = bpf_object__btf(object_);
  const int section_id = types != nullptr ? btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC) : -1;
  bpf_map* rodata = nullptr;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object_) {
    if (std::string_view(bpf_map__name(map)).ends_with(".rodata")) {
      rodata = map;
    }
  }
  if (section_id < 0 || rodata == nullptr) {
    return fail("the BPF object has no constants");
  }
  std::size_t size = 0;
  const auto* initial = static_cast<const std::byte*>(bpf_map__initial_value(rodata, &size));
  std::vector<std::byte> data(initial, initial + size);
  const btf_type* section = btf__type_by_id(types, static_cast<__u32>(section_id));
  for (__u32 i = 0; i < btf_vlen(section); ++i) {
    const btf_var_secinfo& info = btf_var_secinfos(section)[i];
    const btf_type* type = btf__type_by_id(types, info.type);
    if (variable != btf__name_by_offset(types, type->name_off)) {
      continue;
    }
    if (info.size != value.size() || info.offset + info.size > size) {
      return fail("BPF constant " + std::string(variable) + " has another size");
    }
    std::ranges::copy(value, data.begin() + info.offset);
    const int error = bpf_map__set_initial_value(rodata, data.data(), data.size());
    return error != 0 ? Result<void>(fail_errno("cannot set BPF constant " + std::string(variable), -error))
                      : Result<void>();
  }
  return fail("the BPF object has no constant " + std::string(variable));
}

void ObjectSetup::set_max_entries(std::string_view map, std::uint32_t entries) {
  if (bpf_map* found = find(map)) {
    keep(bpf_map__set_max_entries(found, entries), "cannot size map", map);
  }
}

Result<UniqueFd> create_mappable_array(const std::string& name, std::size_t value_size, std::uint32_t entries) {
  bpf_map_create_opts options{};
  options.sz = sizeof(options);
  options.map_flags = BPF_F_MMAPABLE;
  UniqueFd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, name.c_str(), sizeof(std::uint32_t), static_cast<__u32>(value_size),
                              entries, &options));
  if (!map) {
    return fail_errno("cannot create BPF array " + name);
  }
  return map;
}

void ObjectSetup::set_inner_array(std::string_view map, std::size_t value_size, std::uint32_t entries) {
  bpf_map* found = find(map);
  if (found == nullptr) {
    return;
  }
  // libbpf 1.1 crashes when the size of an inner map that the object declares is set.
  auto model = create_mappable_array("template", value_size, entries);
  if (!model) {
    keep(std::unexpected(model.error()));
    return;
  }
  keep(bpf_map__set_inner_map_fd(found, model->get()), "cannot set the shape of the maps in", map);
  templates_.push_back(std::move(*model));
}

void ObjectSetup::reuse_map(std::string_view map, int descriptor) {
  if (bpf_map* found = find(map)) {
    keep(bpf_map__reuse_fd(found, descriptor), "cannot share map", map);
  }
}

void ObjectSetup::reuse_maps(bpf_object* other) {
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, other) {
    if (!bpf_map__is_internal(map)) {
      reuse_map(bpf_map__name(map), bpf_map__fd(map));
    }
  }
}

}  // namespace tacho::kernel
