// Walks over the keys of maps, in batches and one by one.

#include "kernel/map_keys.h"

#include <bpf/bpf.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <vector>

#include "base/unique_fd.h"

using tacho::UniqueFd;

TEST_CASE("a walk over a hash finds every key once, however large its values are") {
  constexpr std::uint32_t kEntries = 5'000;
  for (const std::uint32_t value_size : {4U, 1'024U, 1'032U}) {
    for (const std::uint32_t count : {0U, 1U, 64U, kEntries}) {
      CAPTURE(value_size, count);
      bpf_map_create_opts options{};
      options.sz = sizeof(options);
      options.map_flags = BPF_F_NO_PREALLOC;
      const UniqueFd map(
          bpf_map_create(BPF_MAP_TYPE_HASH, "keys", sizeof(std::uint32_t), value_size, kEntries, &options));
      REQUIRE(map);
      const std::vector<std::byte> value(value_size);
      std::set<std::uint32_t> put;
      for (std::uint32_t key = 0; key < count; ++key) {
        REQUIRE(bpf_map_update_elem(map.get(), &key, value.data(), BPF_ANY) == 0);
        put.insert(key);
      }
      const auto keys = tacho::kernel::keys_of<std::uint32_t>(map.get());
      REQUIRE(keys);
      CHECK(keys->size() == count);
      CHECK(std::set(keys->begin(), keys->end()) == put);
    }
  }
}
