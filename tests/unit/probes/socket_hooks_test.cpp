// Which programs observe what, and that the objects have them.

#include "probes/socket_hooks.h"

#include <bpf/libbpf.h>
#include <bpf/socket.object.h>
#include <bpf/socket_basic.object.h>

#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/unpack.h"
#include "kernel/variants.h"
#include "probes/registry.h"
#include "targets/targets_object.h"

using namespace tacho;

namespace {

using Object = std::unique_ptr<bpf_object, decltype(&bpf_object__close)>;

Object open(const kernel::ObjectSource& source) {
  const auto elf = kernel::unpack(source.bytes);
  REQUIRE(elf);
  return {bpf_object__open_mem(elf->data(), elf->size(), nullptr), &bpf_object__close};
}

/// The programs that some hook may take, those included that may be left out.
std::set<std::string> programs_of(std::span<const kernel::Hook> hooks) {
  std::set<std::string> programs;
  for (const kernel::Hook& hook : hooks) {
    for (const kernel::Alternative& way : hook.alternatives) {
      programs.insert(way.programs.begin(), way.programs.end());
      programs.insert(way.optional.begin(), way.optional.end());
    }
  }
  return programs;
}

/// Every compilation of every object.
std::vector<kernel::Variant> all_variants() {
  auto all = targets::targets_variants();
  for (const probes::Entry& probe : probes::registry()) {
    const auto own = probe.variants();
    CHECK(own.size() >= 2);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

bool is_trampoline(const bpf_object& object, std::string_view program) {
  const bpf_program* found = bpf_object__find_program_by_name(&object, std::string(program).c_str());
  REQUIRE(found != nullptr);
  const std::string_view section = bpf_program__section_name(found);
  return section.starts_with("fexit/") || section.starts_with("fentry/");
}

}  // namespace

TEST_CASE("every program that a hook names is in its object, and every program of an object is named by a hook") {
  for (const kernel::Variant& variant : all_variants()) {
    const Object object = open(variant.source);
    REQUIRE(object != nullptr);
    auto named = programs_of(variant.hooks);
    if (variant.source.name == "socket") {
      named.merge(programs_of(probes::splice_hooks()));  // loaded beside
      // On the other kernels; what is compiled without types has these programs and no use for them.
      named.merge(programs_of(probes::socket_hooks(true)));
      named.merge(programs_of(probes::socket_hooks(false)));
    }
    std::set<std::string> there;
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object.get()) {
      there.insert(bpf_program__name(program));
    }
    CAPTURE(variant.source.name, variant.name);
    CHECK(there == named);
  }
}

TEST_CASE("programs that may be interrupted take no others their plain additions") {
  const bool basic = GENERATE(false, true);
  const bool preemptible = GENERATE(false, true);
  CAPTURE(basic);
  const Object object = open(kernel::source_of("socket", basic ? socket_basic_object : socket_object));
  REQUIRE(object != nullptr);
  for (const kernel::Hook& hook : basic ? probes::socket_basic_hooks() : probes::socket_hooks(preemptible)) {
    for (const kernel::Alternative& way : hook.alternatives) {
      std::vector<std::string_view> programs(way.programs.begin(), way.programs.end());
      programs.insert(programs.end(), way.optional.begin(), way.optional.end());
      for (const std::string_view program : programs) {
        CAPTURE(hook.name, way.method, program);
        CHECK(is_trampoline(*object, program) == (way.method == "fentry"));
      }
    }
  }
  // These are loaded beside.
  for (const kernel::Hook& hook : probes::splice_hooks()) {
    for (const std::string_view program : hook.alternatives.front().optional) {
      CHECK(is_trampoline(*object, program));
    }
  }
}
