// What user space and the programs share about who belongs to which target.

#include "targets/target_maps.h"

#include <bpf/bpf.h>

#include <bit>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <memory>

#include "kernel/map.h"
#include "kernel/mapped_array.h"
#include "targets/targets_object.h"

using tacho::kernel::MappedArray;
using tacho::targets::TargetMaps;

namespace {

constexpr target_ref kTarget{.index = 1, .epoch = 1};

/// The maps of an object whose programs are attached to nothing.
struct Maps {
  std::unique_ptr<tacho::kernel::BpfObject> object =
      tacho::targets::load_targets_object(4, false, {.forced_method = {}, .btf_path = {}, .attach = false}).value();
  TargetMaps maps = TargetMaps::open(*object, 4).value();
  MappedArray rules =
      MappedArray::open(object->map("target_rules"), sizeof(target_rules), 1, MappedArray::Access::read).value();

  [[nodiscard]] const target_rules& shared() const { return rules.at<target_rules>(0); }
  /// Bits in the filter that is in use.
  [[nodiscard]] int marked(const __u64 (target_filter::*words)[TACHO_FILTER_BITS / 64]) const {
    int bits = 0;
    for (const __u64 word : shared().filters[shared().filter & 1].*words) {
      bits += std::popcount(static_cast<std::uint64_t>(word));
    }
    return bits;
  }
  [[nodiscard]] bool knows(std::uint64_t cgroup) const {
    target_ref found{};
    return bpf_map_lookup_elem(object->map("cgroup_targets"), &cgroup, &found) == 0;
  }
};

}  // namespace

TEST_CASE("the filters have a bit for each member, and lose it at the next full look") {
  Maps state;
  std::map<std::uint64_t, target_ref> cgroups;
  for (std::uint64_t id = 1; id <= 300; ++id) {
    cgroups[id] = kTarget;
  }
  const auto assigned = state.maps.assign(cgroups, {{7, kTarget}, {4096 + 8, kTarget}});
  CHECK(assigned.grew);
  CHECK(assigned.refused == 0);
  CHECK(state.marked(&target_filter::cgroups) == 300);
  CHECK(state.marked(&target_filter::processes) == 2);
  cgroups.erase(cgroups.begin(), cgroups.find(300));
  state.maps.assign(cgroups, {});
  CHECK(state.marked(&target_filter::cgroups) == 300);
  state.maps.begin_look();
  state.maps.end_look([](std::uint32_t) { return true; });
  CHECK(state.marked(&target_filter::cgroups) == 1);
  CHECK(state.marked(&target_filter::processes) == 0);
  CHECK_FALSE(state.maps.assign(cgroups, {}).grew);
}

TEST_CASE("what only the kernel knew before a full look, and the look did not find, is taken back") {
  Maps state;
  const auto inherit = [&state](std::uint64_t cgroup, std::uint32_t tgid) {
    REQUIRE(bpf_map_update_elem(state.object->map("cgroup_targets"), &cgroup, &kTarget, BPF_ANY) == 0);
    REQUIRE(bpf_map_update_elem(state.object->map("process_targets"), &tgid, &kTarget, BPF_ANY) == 0);
  };
  inherit(10, 100);
  inherit(11, 101);
  state.maps.begin_look();
  inherit(12, 102);  // while the look is under way
  // Nothing new: the kernel knew of it.
  CHECK_FALSE(state.maps.assign({{11, kTarget}}, {}).grew);
  const auto generation = state.shared().generation;
  state.maps.end_look([](std::uint32_t tgid) { return tgid == 101; });
  CHECK(state.shared().generation != generation);
  CHECK_FALSE(state.knows(10));
  CHECK(state.knows(11));
  CHECK(state.knows(12));
  CHECK(state.marked(&target_filter::cgroups) == 2);
  CHECK(state.marked(&target_filter::processes) == 2);
}

TEST_CASE("a member for which there is no room is refused once, however often it is asked for") {
  Maps state;
  std::map<std::uint64_t, target_ref> cgroups;
  for (std::uint64_t id = 1; id <= 16'384 + 3; ++id) {
    cgroups[id] = kTarget;
  }
  CHECK(state.maps.assign(cgroups, {}).refused == 3);
  CHECK(state.maps.assign(cgroups, {}).refused == 0);
}

TEST_CASE("what a target does without goes with it, and all programs are told the highest level") {
  Maps state;
  const MappedArray settings =
      MappedArray::open(state.object->map("target_settings"), sizeof(target_settings), 4, MappedArray::Access::read)
          .value();
  const auto level = [&](std::uint32_t index) { return settings.at<target_settings>(index).shed; };
  constexpr target_ref kOther{.index = 2, .epoch = 1};
  constexpr target_ref kNext{.index = 1, .epoch = 2};
  state.maps.set_target(kTarget, {});
  state.maps.set_target(kOther, {});
  const __u32 generation = state.shared().generation;
  state.maps.set_shed(kTarget, TACHO_SHED_ANATOMY);
  state.maps.set_shed(kOther, TACHO_SHED_INTERVALS);
  CHECK(level(1) == TACHO_SHED_ANATOMY);
  CHECK(level(2) == TACHO_SHED_INTERVALS);
  CHECK(state.shared().shed == TACHO_SHED_ANATOMY);
  // Settings that stay do not change it.
  state.maps.set_target(kTarget, {});
  CHECK(level(1) == TACHO_SHED_ANATOMY);
  state.maps.set_target(kNext, {});
  CHECK(level(1) == TACHO_SHED_NOTHING);
  CHECK(state.shared().shed == TACHO_SHED_INTERVALS);
  // Of a target that is gone.
  state.maps.set_shed(kTarget, TACHO_SHED_POLLS);
  CHECK(level(1) == TACHO_SHED_NOTHING);
  state.maps.set_shed(kOther, TACHO_SHED_NOTHING);
  CHECK(level(2) == TACHO_SHED_NOTHING);
  CHECK(state.shared().shed == TACHO_SHED_NOTHING);
  // Nobody has to look his target up again.
  CHECK(state.shared().generation == generation);
}

TEST_CASE("a map is not opened with keys or values of another size than the kernel's") {
  const Maps state;
  const auto& object = *state.object;
  using tacho::kernel::Map;
  const auto map = Map<std::uint64_t, target_ref>::open(object, "cgroup_targets");
  REQUIRE(map);
  CHECK_FALSE(map->contains(1));
  CHECK_FALSE(Map<std::uint32_t, target_ref>::open(object, "cgroup_targets"));
  CHECK_FALSE(Map<std::uint64_t, std::uint32_t>::open(object, "cgroup_targets"));
  CHECK_FALSE(Map<std::uint64_t, target_ref>::open(object, "cgroup_target"));
}
