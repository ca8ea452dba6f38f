// Kernels without type information know no iterators, and some refuse those over maps: other programs do their work.

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/socket.skel.h>
#include <bpf/socket_basic.skel.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "bpf/socket.h"
#include "kernel/bpf_object.h"
#include "kernel/iterator.h"
#include "kernel/map_keys.h"

namespace {

/// Bytes from the beginning of a structure of the object's own to one of its members.
std::size_t offset_of(const bpf_object* object, const char* structure, std::string_view member) {
  const btf* types = bpf_object__btf(object);
  const btf_type* type =
      btf__type_by_id(types, static_cast<__u32>(btf__find_by_name_kind(types, structure, BTF_KIND_STRUCT)));
  for (std::uint32_t i = 0; i < btf_vlen(type); ++i) {
    if (member == btf__name_by_offset(types, btf_members(type)[i].name_off)) {
      return btf_member_bit_offset(type, i) / 8;
    }
  }
  FAIL("no member " << member);
  return 0;
}

using Bytes = const void* (*)(std::size_t*);

/// A BPF object with one program of its sweep.
std::unique_ptr<tacho::kernel::BpfObject> with_sweep(std::string_view name, Bytes elf, std::string_view program) {
  const std::array programs{program};
  const std::array ways{tacho::kernel::Alternative{"tried", programs}};
  const std::array hooks{tacho::kernel::Hook{"sweep", ways}};
  std::size_t size = 0;
  const auto* bytes = static_cast<const std::byte*>(elf(&size));
  const auto set_up = [](tacho::kernel::ObjectSetup& setup) {
    setup.set_inner_array("socket_blocks", sizeof(socket_shard), 1);
    setup.set_inner_array("dependency_blocks", sizeof(dependency), 1);
  };
  auto loaded = tacho::kernel::BpfObject::load({name, {bytes, size}}, hooks, {}, set_up);
  INFO((loaded ? "" : loaded.error().message));
  REQUIRE(loaded);
  return std::move(*loaded);
}

}  // namespace

TEST_CASE("rings of datagrams are swept by their keys, as the iterator does") {
  const auto object = with_sweep("socket_basic", socket_basic_bpf__elf_bytes, "socket_sweep_datagram_keys");
  const int rings = object->map("datagram_rings");
  bpf_map_info info{};
  __u32 length = sizeof(info);
  REQUIRE(bpf_obj_get_info_by_fd(rings, &info, &length) == 0);
  const std::size_t touched = offset_of(object->get(), "datagram_ring", "touched");

  timespec clock{};
  ::clock_gettime(CLOCK_MONOTONIC, &clock);
  const std::uint64_t now = std::uint64_t(clock.tv_sec) * 1'000'000'000;
  const std::uint64_t long_ago = now - 61'000'000'000;
  // 23 that nobody has used for a minute, more than one run takes, and 2 that were used just now.
  std::vector<std::byte> ring(info.value_size);
  for (std::uint64_t key = 1; key <= 25; ++key) {
    std::memcpy(ring.data() + touched, key % 12 == 0 ? &now : &long_ago, sizeof(now));
    REQUIRE(bpf_map_update_elem(rings, &key, ring.data(), BPF_ANY) == 0);
  }
  const auto swept = tacho::kernel::run_over_keys(object->program("socket_sweep_datagram_keys"), rings);
  INFO((swept ? "" : swept.error().message));
  REQUIRE(swept);
  auto left = tacho::kernel::keys_of<std::uint64_t>(rings);
  REQUIRE(left);
  std::ranges::sort(*left);
  CHECK(*left == std::vector<std::uint64_t>{12, 24});
}

TEST_CASE("sockets are swept by way of open files, as the iterator over their storage does") {
  const auto object = with_sweep("socket", socket_bpf__elf_bytes, "socket_sweep_files");
  const int states = object->map("socket_states");
  bpf_map_info info{};
  __u32 length = sizeof(info);
  REQUIRE(bpf_obj_get_info_by_fd(states, &info, &length) == 0);
  const std::size_t turn = offset_of(object->get(), "socket_state", "turn");
  const std::size_t ended = offset_of(object->get(), "socket_state", "ended");
  // Of a connection that is over, a turn is open: nobody has seen its end.
  const tacho::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int key = socket.get();
  std::vector<std::byte> state(info.value_size);
  constexpr std::uint32_t kTurn = 7;
  std::memcpy(state.data() + turn, &kTurn, sizeof(kTurn));
  REQUIRE(bpf_map_update_elem(states, &key, state.data(), BPF_ANY) == 0);
  const auto swept = tacho::kernel::run_iterator(object->program("socket_sweep_files"));
  INFO((swept ? "" : swept.error().message));
  REQUIRE(swept);
  REQUIRE(bpf_map_lookup_elem(states, &key, state.data()) == 0);
  std::uint32_t last = 0;
  std::memcpy(&last, state.data() + ended, sizeof(last));
  CHECK(last == kTurn);
}
