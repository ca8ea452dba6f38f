#include "kernel/ring_buffer.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <stdexcept>
#include <vector>

using tacho::kernel::RingBuffer;

TEST_CASE("what a taker of records throws does not pass through libbpf, is counted, and the rest is taken") {
  std::vector<std::size_t> sizes;
  RingBuffer::Taker taker{.take = [&sizes](std::span<const std::byte> record) {
    if (record.size() == 2) {
      throw std::runtime_error("no room");
    }
    if (record.size() == 3) {
      throw 3;  // not an exception of the library's
    }
    sizes.push_back(record.size());
  }};
  std::uint64_t bytes = 0;
  for (std::size_t size = 1; size <= 4; ++size) {
    CHECK(RingBuffer::Taker::call(&taker, &bytes, size) == 0);
  }
  CHECK(sizes == std::vector<std::size_t>{1, 4});
  CHECK(taker.lost == 2);
}
