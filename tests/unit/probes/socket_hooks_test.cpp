// Which programs observe sockets, kind by kind.

#include "probes/socket_hooks.h"

#include <bpf/libbpf.h>
#include <bpf/socket.skel.h>
#include <bpf/socket_basic.skel.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace tacho;

namespace {

using Object = std::unique_ptr<bpf_object, decltype(&bpf_object__close)>;

Object open(const void* (*elf_bytes)(std::size_t*)) {
  std::size_t size = 0;
  const void* bytes = elf_bytes(&size);
  return {bpf_object__open_mem(bytes, size, nullptr), &bpf_object__close};
}

bool is_trampoline(const bpf_object& object, std::string_view program) {
  const bpf_program* found = bpf_object__find_program_by_name(&object, std::string(program).c_str());
  REQUIRE(found != nullptr);
  const std::string_view section = bpf_program__section_name(found);
  return section.starts_with("fexit/") || section.starts_with("fentry/");
}

}  // namespace

TEST_CASE("programs that may be interrupted take no others their plain additions") {
  const bool basic = GENERATE(false, true);
  CAPTURE(basic);
  const Object object = open(basic ? socket_basic_bpf__elf_bytes : socket_bpf__elf_bytes);
  REQUIRE(object != nullptr);
  for (const kernel::Hook& hook : basic ? probes::socket_basic_hooks() : probes::socket_hooks()) {
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
