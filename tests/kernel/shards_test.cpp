// The programs take the shard that user space means for their CPU.

#include "kernel/shards.h"

#include <bpf/bpf.h>
#include <bpf/shards.skel.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>

#include "kernel/bpf_object.h"

namespace kernel = tacho::kernel;

namespace {

std::unique_ptr<kernel::BpfObject> load(const kernel::ShardLayout& layout) {
  static constexpr std::array<std::string_view, 1> kPrograms{"shard_here"};
  static constexpr std::array kWays{kernel::Alternative{"test_run", kPrograms}};
  static constexpr std::array kHooks{kernel::Hook{"shard", kWays}};
  std::size_t size = 0;
  const void* bytes = shards_bpf__elf_bytes(&size);
  auto object =
      kernel::BpfObject::load({"shards", {static_cast<const std::byte*>(bytes), size}}, kHooks,
                              {.forced_method = {}, .btf_path = {}, .attach = false},
                              [&layout](kernel::ObjectSetup& setup) { kernel::set_shards(setup, layout, false); });
  INFO((object ? "" : object.error().message));
  REQUIRE(object);
  return std::move(*object);
}

}  // namespace

TEST_CASE("every CPU that is online takes the shard that is meant for it, whatever number it has") {
  const kernel::Cpus cpus = kernel::read_cpus();
  kernel::ShardLayout layout = kernel::shard_layout(cpus);
  // As on a machine where numbers tell nothing.
  for (std::size_t cpu = 0; cpu < layout.of_cpu.size(); ++cpu) {
    layout.of_cpu[cpu] = static_cast<std::uint8_t>(1 + cpu * 7 % 16);
  }
  const auto object = load(layout);
  const auto programs = object->loaded_programs();
  REQUIRE(programs.size() == 1);
  for (const kernel::Cpu& cpu : cpus.online) {
    CAPTURE(cpu.number);
    bpf_test_run_opts options{};
    options.sz = sizeof(options);
    options.flags = BPF_F_TEST_RUN_ON_CPU;
    options.cpu = cpu.number;
    REQUIRE(bpf_prog_test_run_opts(programs.front().second, &options) == 0);
    CHECK(options.retval == layout.of_cpu.at(cpu.number));
  }
}

TEST_CASE("a target has memory for the CPUs that are online, not for all that there could ever be") {
  const kernel::Cpus cpus = kernel::read_cpus();
  const kernel::ShardLayout layout = kernel::shard_layout(cpus);
  CAPTURE(cpus.end, cpus.online.size());
  REQUIRE(!cpus.online.empty());
  CHECK(layout.process_shards <= std::max<std::size_t>(4, 2 * cpus.online.size()));
  CHECK(layout.process_shards >= std::min<std::size_t>(16, cpus.online.size()));
}
