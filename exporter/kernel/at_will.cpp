#include "kernel/at_will.h"

#include <string_view>

#include "kernel/iterator.h"
#include "kernel/trials.h"

namespace tacho::kernel {
namespace {

/// Whether the kernel lets such an iterator go over a map of this kind; whether it fits the program, the kernel says.
bool is_over(std::string_view section, bpf_map_type type) {
  return section == "iter/bpf_sk_storage_map" ? type == BPF_MAP_TYPE_SK_STORAGE
                                              : type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_ARRAY;
}

Result<void> try_over_maps(const bpf_program* program, const bpf_object* object) {
  const std::string_view section = bpf_program__section_name(program);
  Result<void> tried;
  const bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object) {
    if (is_over(section, bpf_map__type(map))) {
      tried = try_map_iterator(program, bpf_map__fd(map));
      if (tried) {
        break;
      }
    }
  }
  return tried;
}

}  // namespace

bool is_run_at_will(const bpf_program* program) {
  const std::string_view section = bpf_program__section_name(program);
  return section.starts_with("iter/") || section == "raw_tp";
}

Result<void> try_at_will(const bpf_program* program, const bpf_object* object) {
  const std::string_view section = bpf_program__section_name(program);
  const bool over_map = section == "iter/bpf_map_elem" || section == "iter/bpf_sk_storage_map";
  auto tried = section == "raw_tp" ? run_over_no_keys(program)
               : over_map          ? try_over_maps(program, object)
                                   : try_iterator(program);
  // Later it may run.
  return !tried && is_passing(tried.error().code) ? Result<void>() : tried;
}

}  // namespace tacho::kernel
