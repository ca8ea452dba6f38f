#include "probes/rising.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <thread>
#include <vector>

#include "probes/sched_decode.h"

using tacho::probes::Rising;
using tacho::probes::RisingTotals;
using tacho::probes::SchedTotals;

TEST_CASE("what is exported never falls, whatever is read") {
  Rising<std::int64_t> largest;
  CHECK(largest.raise(-5) == 0);
  CHECK(largest.raise(7) == 7);
  CHECK(largest.raise(3) == 7);
  CHECK(largest.raise(8) == 8);
}

TEST_CASE("of several threads that read, none is told less than it was told before, or has read") {
  constexpr std::uint64_t kReads = 20'000;
  Rising<std::uint64_t> largest;
  std::array<std::uint64_t, 4> fallen{};
  {
    std::vector<std::jthread> readers;
    for (std::size_t i = 0; i < fallen.size(); ++i) {
      readers.emplace_back([&largest, &fell = fallen.at(i), i] {
        std::uint64_t before = 0;
        for (std::uint64_t read = 1; read <= kReads; ++read) {
          const std::uint64_t value = read * (i + 1);
          const std::uint64_t told = largest.raise(value);
          fell += static_cast<std::uint64_t>(told < before || told < value);
          before = told;
        }
      });
    }
  }
  CHECK(fallen == std::array<std::uint64_t, 4>{});
  CHECK(largest.raise(0) == kReads * fallen.size());
}

TEST_CASE("each of a target's times rises by itself") {
  RisingTotals exported;
  SchedTotals first;
  first.state_ns[0] = 10;
  first.offcpu_ns[1] = 20;
  exported.raise(first);
  SchedTotals second;
  second.state_ns[0] = 4;
  second.state_ns[1] = 5;
  second.offcpu_ns[1] = 21;
  const SchedTotals told = exported.raise(second);
  CHECK(told.state_ns[0] == 10);
  CHECK(told.state_ns[1] == 5);
  CHECK(told.offcpu_ns[1] == 21);
}
