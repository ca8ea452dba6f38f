// Objects are embedded compressed.

#include "kernel/unpack.h"

#include <bpf/poll.object.h>
#include <bpf/poll.skel.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "kernel/variants.h"

using namespace tacho;
using kernel::source_of;
using kernel::unpack;

TEST_CASE("an embedded object is what was compiled, and much shorter until it is needed") {
  const auto compiled = source_of("poll", poll_bpf__elf_bytes).bytes;
  const auto embedded = source_of("poll", poll_object).bytes;
  CHECK(embedded.size() < compiled.size() / 3);
  const auto unpacked = unpack(embedded);
  REQUIRE(unpacked);
  CHECK(std::ranges::equal(*unpacked, compiled));
  const auto copied = unpack(compiled);
  REQUIRE(copied);
  CHECK(std::ranges::equal(*copied, compiled));
}

TEST_CASE("an embedded object that is not whole is an error") {
  const auto embedded = source_of("poll", poll_object).bytes;
  std::vector<std::byte> bytes(embedded.begin(), embedded.end());
  SECTION("its end is missing") {
    bytes.resize(bytes.size() / 2);
  }
  SECTION("a byte is wrong") {
    bytes[bytes.size() / 2] ^= std::byte{1};
  }
  SECTION("its size is wrong") {
    bytes[bytes.size() - 3] ^= std::byte{1};
  }
  SECTION("something follows it") {
    bytes.insert(bytes.end() - 8, std::byte{0});
  }
  const auto unpacked = unpack(bytes);
  REQUIRE_FALSE(unpacked);
  CHECK(unpacked.error().message == "an embedded object is not whole");
}
