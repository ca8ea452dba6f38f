// What is known of an object before the kernel sees it.

#include "kernel/bpf_object.h"

#include <bpf/poll.skel.h>

#include <array>
#include <catch2/catch.hpp>
#include <string_view>
#include <type_traits>

#include "kernel/variants.h"

using namespace tacho;

using Lost = decltype([](kernel::ObjectSetup&) { return Result<void>{}; });
static_assert(!std::is_constructible_v<kernel::BpfObject::Setup, Lost>, "an error that a setup returns would be lost");

TEST_CASE("a program that an object does not have is an error that names it, also where it may be left out") {
  static constexpr std::array<std::string_view, 1> kThere{"poll_thread_exit"};
  static constexpr std::array<std::string_view, 1> kMisspelt{"pol_thread_exit"};
  static constexpr std::array kFirst{kernel::Alternative{"tp_btf", kMisspelt}};
  static constexpr std::array kLater{kernel::Alternative{"tp_btf", kThere}, kernel::Alternative{"fentry", kMisspelt}};
  static constexpr std::array kOptional{kernel::Alternative{"tp_btf", kThere, kMisspelt}};
  for (const auto ways : {std::span<const kernel::Alternative>(kFirst), std::span<const kernel::Alternative>(kLater),
                          std::span<const kernel::Alternative>(kOptional)}) {
    const std::array hooks{kernel::Hook{"hook", ways}};
    const auto object = kernel::BpfObject::load(kernel::source_of("poll", poll_bpf__elf_bytes), hooks, {},
                                                [](kernel::ObjectSetup&) { FAIL("the setup was reached"); });
    REQUIRE_FALSE(object);
    CHECK(object.error().message == "BPF object poll has no program pol_thread_exit");
  }
}
