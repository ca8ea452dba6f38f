// Objects are embedded compressed.

#include "kernel/unpack.h"

#include <bpf/poll.object.h>
#include <bpf/poll.skel.h>
#include <lzma.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/variants.h"

using namespace tacho;
using kernel::source_of;
using kernel::unpack;

namespace {

/// In xz's format, with the dictionary of one of its presets.
std::vector<std::byte> packed(std::span<const std::byte> bytes, std::uint32_t preset) {
  std::vector<std::byte> xz(lzma_stream_buffer_bound(bytes.size()));
  std::size_t size = 0;
  REQUIRE(lzma_easy_buffer_encode(preset, LZMA_CHECK_CRC64, nullptr,
                                  reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(),
                                  reinterpret_cast<std::uint8_t*>(xz.data()), &size, xz.size()) == LZMA_OK);
  xz.resize(size);
  return xz;
}

}  // namespace

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
  SECTION("a byte of what says its size is wrong") {
    bytes[bytes.size() - 16] ^= std::byte{1};
  }
  SECTION("a byte of its end is wrong") {
    bytes[bytes.size() - 3] ^= std::byte{1};
  }
  SECTION("only its beginning is there") {
    bytes.resize(8);
  }
  SECTION("something is between") {
    bytes.insert(bytes.end() - 12, 4, std::byte{0});
  }
  SECTION("something follows it") {
    bytes.insert(bytes.end(), 4, std::byte{0});
  }
  SECTION("it is there twice") {
    bytes.insert(bytes.end(), embedded.begin(), embedded.end());
  }
  const auto unpacked = unpack(bytes);
  REQUIRE_FALSE(unpacked);
  CHECK(unpacked.error().message == "an embedded object is not whole");
}

TEST_CASE("an embedded object whose decompression needs more memory than bpf/embed chose is an error") {
  const auto compiled = source_of("poll", poll_bpf__elf_bytes).bytes;
  const auto unpacked = unpack(packed(compiled, 1));
  REQUIRE(unpacked);
  CHECK(std::ranges::equal(*unpacked, compiled));
  CHECK_FALSE(unpack(packed(compiled, 9)));  // 64 MiB
}
