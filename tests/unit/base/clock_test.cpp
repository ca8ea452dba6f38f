#include "base/clock.h"

#include <catch2/catch.hpp>

namespace tacho {
namespace {

TEST_CASE("What a time namespace adds to the clock is read from the kernel's table") {
  CHECK(parse_time_offset("monotonic           0         0\nboottime            7         0\n") == 0);
  CHECK(parse_time_offset("monotonic      100000       250\nboottime            7         0\n") == 100'000'000'000'250);
  CHECK(parse_time_offset("monotonic         -3 999999999\nboottime            0         0\n") == -2'000'000'001);
  CHECK(parse_time_offset("") == 0);
  CHECK(parse_time_offset("monotonic ") == 0);
}

TEST_CASE("The kernel's clock is this process's, less what its namespace adds") {
  const std::int64_t before = kernel_now_ns();
  CHECK(before > 0);
  CHECK(kernel_now_ns() >= before);
}

}  // namespace
}  // namespace tacho
