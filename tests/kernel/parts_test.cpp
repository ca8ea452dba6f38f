// Objects in parts, which the kernel verifies at the same time.

#include <bpf/bpf.h>
#include <bpf/parts.skel.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "kernel/bpf_object.h"
#include "kernel/variants.h"

using namespace tacho;
using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using kernel::Alternative;
using kernel::Hook;

namespace {

constexpr std::array<std::string_view, 1> kFirst{"part_first"};
constexpr std::array<std::string_view, 1> kGood{"part_good"};
constexpr std::array<std::string_view, 1> kRefused{"part_refused"};
constexpr std::array<std::string_view, 1> kInstead{"part_instead"};
constexpr std::array<std::string_view, 1> kUnattachable{"part_unattachable"};
constexpr std::array<std::string_view, 1> kUnstartable{"part_unstartable"};
constexpr std::array kFirstWays{Alternative{"first", kFirst}};
constexpr std::array kGoodWays{Alternative{"good", kGood}};
constexpr std::array kRefusedWays{Alternative{"refused", kRefused}};
constexpr std::array kBothWays{Alternative{"refused", kRefused}, Alternative{"instead", kInstead}};

/// Three parts, of which the last is refused, or all are.
constexpr std::array kReplaced{Hook{"a", kFirstWays}, Hook{"b", kGoodWays, 1}, Hook{"c", kBothWays, 2}};
constexpr std::array kLeftOut{Hook{"a", kFirstWays}, Hook{"b", kGoodWays, 1}, Hook{"c", kRefusedWays, 2}};
constexpr std::array kNothingLeft{Hook{"a", kRefusedWays}, Hook{"b", kRefusedWays, 1}, Hook{"c", kRefusedWays, 2}};

constexpr std::array kUnattachedWays{Alternative{"unattachable", kUnattachable}, Alternative{"instead", kInstead}};
constexpr std::array kUnattached{Hook{"a", kFirstWays}, Hook{"b", kGoodWays, 1}, Hook{"c", kUnattachedWays, 2}};
constexpr std::array kUnstartedWays{Alternative{"unstartable", kUnstartable}, Alternative{"first", kFirst}};
constexpr std::array kUnstarted{Hook{"a", kUnstartedWays}, Hook{"b", kGoodWays, 1}};
constexpr std::array kUnneededWays{Alternative{"first", kFirst, kUnstartable}};
constexpr std::array kUnneeded{Hook{"a", kUnneededWays}, Hook{"b", kGoodWays, 1}};

void nothing(kernel::ObjectSetup& /*setup*/) {}

auto load(std::span<const Hook> hooks, const kernel::BpfObject::Setup& setup = nothing) {
  return kernel::BpfObject::load(kernel::source_of("parts", parts_bpf__elf_bytes), hooks, {}, setup);
}

std::uint64_t runs(const kernel::BpfObject& object, std::uint32_t part) {
  std::uint64_t value = 0;
  REQUIRE(bpf_map_lookup_elem(object.map("part_runs"), &part, &value) == 0);
  return value;
}

using Names = std::vector<std::string>;

Names programs_of(const kernel::BpfObject& object) {
  Names names;
  for (const auto& [name, descriptor] : object.loaded_programs()) {
    names.push_back(name);
  }
  return names;
}

/// Programs of this test that the kernel has.
int in_kernel() {
  int count = 0;
  for (__u32 id = 0; bpf_prog_get_next_id(id, &id) == 0;) {
    const UniqueFd program(bpf_prog_get_fd_by_id(id));
    bpf_prog_info info{};
    __u32 size = sizeof(info);
    const bool known = program && bpf_obj_get_info_by_fd(program.get(), &info, &size) == 0;
    count += known && std::string_view(info.name).starts_with("part_") ? 1 : 0;
  }
  return count;
}

/// The kernel frees them a moment after they are given up.
bool none_in_kernel() {
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (in_kernel() != 0) {
    if (std::chrono::steady_clock::now() > until) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

void start_a_thread() {
  std::thread([] {}).join();
}

/// Each part counts in the one map that they share.
void check_that_all_parts_run(const kernel::BpfObject& object) {
  start_a_thread();
  for (std::uint32_t part = 0; part < 3; ++part) {
    CAPTURE(part);
    CHECK(runs(object, part) > 0);
  }
}

}  // namespace

TEST_CASE("a part that the kernel refuses takes its next method, and the other parts are not loaded again") {
  {
    const auto object = load(kReplaced);
    REQUIRE(object);
    CHECK((*object)->method("a") == "first");
    CHECK((*object)->method("b") == "good");
    CHECK((*object)->method("c") == "instead");
    CHECK_THAT((*object)->hooks().at(2).error, Contains("refused: ") && Contains("part_refused"));
    CHECK((*object)->tries() == 2);
    CHECK(programs_of(**object) == Names{"part_first", "part_good", "part_instead"});
    CHECK(in_kernel() == 3);
    check_that_all_parts_run(**object);
  }
  CHECK(none_in_kernel());
}

TEST_CASE("a part that is not attached takes its next method, and no other part is loaded again") {
  {
    std::atomic<int> loads = 0;
    const auto object = load(kUnattached, [&loads](kernel::ObjectSetup&) { ++loads; });
    REQUIRE(object);
    CHECK((*object)->method("c") == "instead");
    CHECK_THAT((*object)->hooks().at(2).error, Contains("unattachable: "));
    CHECK(loads == 4);
    CHECK(programs_of(**object) == Names{"part_first", "part_good", "part_instead"});
    check_that_all_parts_run(**object);
  }
  CHECK(none_in_kernel());
}

TEST_CASE("an iterator that loads and cannot be started is as good as refused, before the other parts are loaded") {
  std::atomic<int> loads = 0;
  const auto object = load(kUnstarted, [&loads](kernel::ObjectSetup&) { ++loads; });
  REQUIRE(object);
  CHECK((*object)->method("a") == "first");
  CHECK_THAT((*object)->hooks().at(0).error, Contains("unstartable: "));
  CHECK((*object)->program("part_unstartable") == nullptr);
  CHECK(loads <= 3);
}

TEST_CASE("an iterator that cannot be started and may be left out is not run") {
  const auto object = load(kUnneeded);
  REQUIRE(object);
  CHECK((*object)->method("a") == "first");
  CHECK((*object)->program("part_first") != nullptr);
  CHECK((*object)->program("part_unstartable") == nullptr);
}

TEST_CASE("a part of which the kernel refuses everything is left out with its reason, and the others count") {
  {
    const auto object = load(kLeftOut);
    REQUIRE(object);
    CHECK_FALSE((*object)->attached("c"));
    CHECK_THAT((*object)->hooks().at(2).error, Contains("part_refused"));
    CHECK(programs_of(**object) == Names{"part_first", "part_good"});
    start_a_thread();
    CHECK(runs(**object, 0) > 0);
    CHECK(runs(**object, 1) > 0);
    CHECK(runs(**object, 2) == 0);
  }
  CHECK(none_in_kernel());
}

TEST_CASE("where the kernel refuses every part the error names all reasons, and nothing is left") {
  const auto object = load(kNothingLeft);
  REQUIRE_FALSE(object);
  CHECK_THAT(object.error().message, Contains("no hook of parts can be attached: a: refused: ") &&
                                         Contains("; b: refused: ") && Contains("; c: refused: "));
  CHECK(none_in_kernel());
}

TEST_CASE("where the setup of one part fails its error is that of the object, and nothing is left") {
  std::atomic<int> calls = 0;
  const auto object = load(kReplaced, [&calls](kernel::ObjectSetup& setup) {
    if (++calls == 2) {
      setup.set_max_entries("unheard_of", 1);
      setup.set_max_entries("later", 1);
    }
  });
  REQUIRE_FALSE(object);
  CHECK(object.error().message == "the BPF object has no map unheard_of");
  CHECK(none_in_kernel());
}
