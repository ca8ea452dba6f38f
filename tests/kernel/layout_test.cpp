// A field of the kernel whose type changes loads without complaint and reads wrong: CO-RE moves fields, and adapts the
// size of a load only for unsigned integers. So what bpf/lib/kernel.bpf.h says is compared with the running kernel.
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kernel/unpack.h"
#include "probes/registry.h"
#include "targets/targets_object.h"

namespace {

/// An integer or an enumeration within a struct.
struct Number {
  std::int64_t bytes = 0;
  bool bitfield = false;
};

const btf_type* type_of(const btf* types, std::uint32_t id) {
  const btf_type* type = btf__type_by_id(types, id);
  while (btf_is_mod(type) || btf_is_typedef(type)) {
    type = btf__type_by_id(types, type->type);
  }
  return type;
}

std::string_view name_of(const btf* types, std::uint32_t offset) {
  return btf__name_by_offset(types, offset);
}

/// The member of that name, also within unnamed parts; nothing if there is none, or if it is no number.
std::optional<Number> number_in(const btf* types, const btf_type* composite, std::string_view name) {
  for (std::uint32_t i = 0; i < btf_vlen(composite); ++i) {
    const btf_member& member = btf_members(composite)[i];
    const btf_type* type = type_of(types, member.type);
    if (name_of(types, member.name_off) == name && (btf_is_int(type) || btf_is_any_enum(type))) {
      return Number{btf__resolve_size(types, member.type), btf_member_bitfield_size(composite, i) > 0};
    }
    if (name_of(types, member.name_off).empty() && btf_is_composite(type)) {
      if (const auto inner = number_in(types, type, name)) {
        return inner;
      }
    }
  }
  return {};
}

/// Of a struct "task_struct___before_5_14" this is "task_struct".
std::string without_flavour(std::string_view name) {
  return std::string(name.substr(0, name.find("___")));
}

/// "struct.member" of all that differ; `compared` counts.
std::set<std::string> differences(const btf* ours, const btf* kernels, std::size_t& compared) {
  std::set<std::string> found;
  for (std::uint32_t id = 1; id < btf__type_cnt(ours); ++id) {
    const btf_type* type = btf__type_by_id(ours, id);
    const std::string name = without_flavour(name_of(ours, type->name_off));
    const std::int32_t same =
        btf_is_struct(type) && !name.empty() ? btf__find_by_name_kind(kernels, name.c_str(), BTF_KIND_STRUCT) : -1;
    if (same < 0 || name == "pt_regs") {
      continue;  // unknown there, or from the system's headers, with more than what is read
    }
    for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
      const std::string_view member = name_of(ours, btf_members(type)[i].name_off);
      const auto declared = number_in(ours, type, member);
      const auto real = number_in(kernels, btf__type_by_id(kernels, static_cast<std::uint32_t>(same)), member);
      if (declared && real && !declared->bitfield) {
        ++compared;
        if (real->bitfield || real->bytes != declared->bytes) {
          found.insert(name + "." + std::string(member));
        }
      }
    }
  }
  return found;
}

void check_layout(const tacho::kernel::Variant& variant, const btf* kernels) {
  CAPTURE(variant.source.name);
  const auto elf = tacho::kernel::unpack(variant.source.bytes);
  REQUIRE(elf);
  const std::unique_ptr<bpf_object, decltype(&bpf_object__close)> object(
      bpf_object__open_mem(elf->data(), elf->size(), nullptr), bpf_object__close);
  REQUIRE(object);
  std::size_t compared = 0;
  auto different = differences(bpf_object__btf(object.get()), kernels, compared);
  // An int up to Linux 6.18, a u8 in 7.2; read by BPF_CORE_READ_BITFIELD_PROBED, which takes any size.
  different.erase("task_struct.on_cpu");
  CHECK(different == std::set<std::string>{});
  CHECK(compared > 3);
}

}  // namespace

TEST_CASE("numbers that programs read from the kernel have the size that they have there") {
  const std::unique_ptr<btf, decltype(&btf__free)> kernels(btf__load_vmlinux_btf(), btf__free);
  REQUIRE(kernels);
  check_layout(tacho::targets::targets_variants().front(), kernels.get());
  for (const auto& probe : tacho::probes::registry()) {
    check_layout(probe.variants().front(), kernels.get());
  }
}
