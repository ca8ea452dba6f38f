#include "kernel/shards.h"

#include <catch2/catch.hpp>

using tacho::kernel::shard_layout;

TEST_CASE("shards: one a CPU up to 16, always a power of two, exclusive only while no two CPUs share one") {
  struct Row {
    unsigned cpus;
    unsigned process_shards;
    bool exclusive;
  };
  constexpr Row rows[] = {{1, 1, true},   {2, 2, true},    {3, 4, true},     {4, 4, true},     {5, 8, true},
                          {16, 16, true}, {17, 16, false}, {128, 16, false}, {8192, 16, false}};
  for (const auto& [cpus, process_shards, exclusive] : rows) {
    CAPTURE(cpus);
    const auto layout = shard_layout(cpus);
    CHECK(layout.process_shards == process_shards);
    CHECK(layout.exclusive == exclusive);
    CHECK(layout.shards() == process_shards + 1);  // one more for every context
  }
}

TEST_CASE("shards: a machine that reports no CPU is taken for one with one") {
  CHECK(shard_layout(0).process_shards == 1);
  CHECK(shard_layout(0).exclusive);
}

TEST_CASE("shards: where they are exclusive, CPU numbers fall onto different ones") {
  for (unsigned cpus = 1; cpus <= 64; ++cpus) {
    CAPTURE(cpus);
    const auto layout = shard_layout(cpus);
    // The programs take cpu & (process_shards - 1).
    const bool distinct = layout.process_shards >= cpus;
    CHECK(layout.exclusive == distinct);
    CHECK((layout.process_shards & (layout.process_shards - 1)) == 0);
  }
}
