// The programs and user space agree on the slot of every duration.

#include <bpf/bpf.h>
#include <bpf/histogram_slots.skel.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/bpf_object.h"
#include "metrics/buckets.h"

namespace metrics = tacho::metrics;

namespace {

std::unique_ptr<tacho::kernel::BpfObject> load() {
  using tacho::kernel::Alternative;
  using tacho::kernel::Hook;
  static constexpr std::array<std::string_view, 2> kPrograms{"slot_of", "fine_slot_of"};
  static constexpr std::array kWays{Alternative{"test_run", kPrograms}};
  static constexpr std::array kHooks{Hook{"slots", kWays}};
  std::size_t size = 0;
  const void* bytes = histogram_slots_bpf__elf_bytes(&size);
  const tacho::kernel::LoadOptions options{.forced_method = {}, .btf_path = {}, .attach = false};
  auto object = tacho::kernel::BpfObject::load({"histogram_slots", {static_cast<const std::byte*>(bytes), size}},
                                               kHooks, options, [](tacho::kernel::ObjectSetup&) {});
  INFO((object ? "" : object.error().message));
  REQUIRE(object);
  return std::move(*object);
}

/// What the program says; −1 if it cannot be run.
int slot_in_kernel(int program, std::uint64_t ns) {
  bpf_test_run_opts options{};
  options.sz = sizeof(options);
  options.ctx_in = &ns;
  options.ctx_size_in = sizeof(ns);
  return bpf_prog_test_run_opts(program, &options) == 0 ? static_cast<int>(options.retval) : -1;
}

std::vector<std::uint64_t> durations() {
  std::vector<std::uint64_t> all;
  for (std::uint64_t ns = 0; ns < 3'000; ++ns) {
    all.push_back(ns);
  }
  for (std::size_t slot = 0; slot + 1 < TACHO_HISTOGRAM_FINE_SLOTS; ++slot) {
    const double seconds = metrics::slot_bound_seconds(slot, metrics::FineHistogram::kPerOctave);
    const auto bound = static_cast<std::uint64_t>(seconds * 1e9);
    for (const std::int64_t offset : {-2, -1, 0, 1, 2}) {
      all.push_back(bound + static_cast<std::uint64_t>(offset));
    }
  }
  // All powers of two, where an octave of nanoseconds begins, and what is longer than anything.
  for (unsigned bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    all.insert(all.end(), {power - 1, power, power + 1, power + power / 3});
  }
  std::uint64_t state = 1;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    all.push_back(state >> (state >> 58));
  }
  all.push_back(~std::uint64_t{0});
  return all;
}

}  // namespace

TEST_CASE("every duration has the same slot in the kernel and in user space") {
  struct Kind {
    std::string program;
    std::size_t (*slot_of)(std::uint64_t);
    std::size_t slots;
  };
  const auto [name, slot_of, slots] =
      GENERATE(values<Kind>({{"slot_of", metrics::slot_of, metrics::kSlots},
                             {"fine_slot_of", metrics::fine_slot_of, TACHO_HISTOGRAM_FINE_SLOTS}}));
  CAPTURE(name);
  const auto object = load();
  const int program = bpf_program__fd(object->program(name));
  std::size_t checked = 0;
  std::vector<bool> seen(slots);
  for (const std::uint64_t ns : durations()) {
    const int slot = slot_in_kernel(program, ns);
    if (slot != static_cast<int>(slot_of(ns))) {
      CAPTURE(ns);
      CHECK(slot == static_cast<int>(slot_of(ns)));
    }
    seen.at(static_cast<std::size_t>(std::max(slot, 0))) = true;
    ++checked;
  }
  CHECK(checked > 20'000);
  CHECK(std::ranges::count(seen, true) == static_cast<long>(slots));
}
