// What the programs find of targets that come and go before the kernel is told.

#include "probes/target_blocks.h"

#include <bpf/bpf.h>

#include <catch2/catch.hpp>
#include <cstdint>

#include "base/unique_fd.h"
#include "kernel/object_setup.h"

using tacho::UniqueFd;
using tacho::probes::TargetBlocks;

namespace {

constexpr std::uint32_t kIndex = 1;
constexpr std::uint32_t kShards = 2;

/// An array of maps as that of a probe, and the blocks in it.
struct Outer {
  Outer() {
    const auto model = tacho::kernel::create_mappable_array("template", sizeof(std::uint64_t), kShards);
    REQUIRE(model);
    bpf_map_create_opts options{};
    options.sz = sizeof(options);
    options.inner_map_fd = static_cast<__u32>(model->get());
    map = UniqueFd(bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "outer", sizeof(std::uint32_t), sizeof(std::uint32_t),
                                  kIndex + 1, &options));
    REQUIRE(map);
  }

  /// The number of the block that the programs find; 0: none.
  [[nodiscard]] std::uint32_t block() const {
    std::uint32_t number = 0;
    return bpf_map_lookup_elem(map.get(), &kIndex, &number) == 0 ? number : 0;
  }

  UniqueFd map;
};

}  // namespace

TEST_CASE("a target whose successor could not be added loses its block all the same") {
  Outer outer;
  TargetBlocks blocks("test", outer.map.get(), sizeof(std::uint64_t), kShards);
  REQUIRE(blocks.add(kIndex));
  REQUIRE(blocks.flush());
  const std::uint32_t first = outer.block();
  REQUIRE(first != 0);

  blocks.remove(kIndex);
  REQUIRE(blocks.add(kIndex));
  blocks.remove(kIndex);  // another probe had no memory for it
  REQUIRE(blocks.flush());
  const std::uint32_t nobody = outer.block();
  CHECK(nobody != first);

  REQUIRE(blocks.add(kIndex));
  REQUIRE(blocks.flush());
  CHECK(outer.block() != first);
  CHECK(outer.block() != nobody);
}
