// A target that has gone is read by those who still have it, while its index is another one's.

#include "probes/socket_accumulators.h"

#include <arpa/inet.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/unique_fd.h"
#include "kernel/mapped_array.h"
#include "lines.h"

namespace metrics = tacho::metrics;
using namespace tacho::probes;
using tacho::kernel::MappedArray;

namespace {

constexpr std::uint32_t kIndex = 1;
constexpr std::size_t kIndices = 2;
constexpr std::size_t kShards = 2;
constexpr std::size_t kSlots = 4;

/// Memory as that of a BPF array, which both sides have mapped.
template <class Element>
struct Memory {
  explicit Memory(std::size_t entries) : file(::memfd_create("array", MFD_CLOEXEC)) {
    REQUIRE(::ftruncate(file.get(), static_cast<off_t>(entries * sizeof(Element) + 4096)) == 0);
    programs = *MappedArray::open(file.get(), sizeof(Element), entries, MappedArray::Access::read_write);
  }
  /// What tacho has of it.
  [[nodiscard]] MappedArray map(std::size_t entries, MappedArray::Access access) const {
    return std::move(*MappedArray::open(file.get(), sizeof(Element), entries, access));
  }
  Element& operator[](std::size_t index) { return programs.at<Element>(index); }

  tacho::UniqueFd file;
  MappedArray programs;
};

/// One target and what the programs write of it.
struct Target {
  Memory<socket_shard> shards{kShards};
  Memory<dependency> slots{kSlots};
  std::unique_ptr<SocketAccumulators> accumulators;

  explicit Target(const std::shared_ptr<SocketCommon>& common)
      : accumulators(
            std::make_unique<SocketAccumulators>(common, kIndex, shards.map(kShards, MappedArray::Access::read),
                                                 DependencySlots(slots.map(kSlots, MappedArray::Access::read)))) {}

  void call(std::size_t slot, std::uint16_t port) {
    slots[slot].peer.port = port;
    ::inet_pton(AF_INET, "10.0.0.1", &slots[slot].peer.address);
    slots[slot].peer.family = AF_INET;
    slots[slot].duration.slots[20] += 1;
  }
  [[nodiscard]] SocketSample sample() const {
    TargetSample sample;
    accumulators->sample({.now_ns = 1, .cgroup = {}, .in_detail = true}, sample);
    return *sample.socket;
  }
  [[nodiscard]] std::map<std::string, std::string> page() const {
    metrics::Row row;
    accumulators->read({.now_ns = 1, .cgroup = {}, .in_detail = true}, {}, row);
    return test::lines(socket_families(), row);
  }
};

std::shared_ptr<SocketCommon> common_of(const Memory<socket_chains>& chains) {
  tacho::config::AnatomySwitch anatomy;
  anatomy.enabled = true;
  return std::make_shared<SocketCommon>(chains.map(kIndices, MappedArray::Access::read_write), PeerNames(), anatomy,
                                        kIndices);
}

}  // namespace

TEST_CASE("a target that has gone shows what was last, also when another one has its index") {
  Memory<socket_chains> chains(kIndices);
  auto common = common_of(chains);
  Target gone(common);
  gone.call(1, 1111);
  gone.call(2, 2222);
  chains[kIndex].peers = 2;
  chains[kIndex].unrecorded = 7;
  const auto before = gone.page();
  REQUIRE(gone.sample().dependencies.size() == 2);

  gone.accumulators->give_up();
  Target next(common);
  CHECK(chains[kIndex].peers == 0);
  CHECK(next.sample().dependencies.empty());
  CHECK(gone.sample().dependencies.size() == 2);
  next.call(1, 3333);
  chains[kIndex].peers = 1;
  chains[kIndex].unrecorded = 1;
  REQUIRE(next.sample().dependencies.size() == 1);
  CHECK(next.sample().dependencies[0].peer == "10.0.0.1:3333");
  REQUIRE(gone.sample().dependencies.size() == 2);
  CHECK(gone.sample().dependencies[0].peer == "10.0.0.1:1111");
  CHECK(gone.sample().dependencies[1].peer == "10.0.0.1:2222");
  CHECK(gone.page() == before);
  CHECK(next.page() != before);
}

TEST_CASE("who reads while the index is given on finds what was last, or what is now, of its own target") {
  constexpr int kLives = 300;
  Memory<socket_chains> chains(kIndices);
  auto common = common_of(chains);
  for (int life = 0; life < kLives; ++life) {
    Target gone(common);
    gone.call(1, 1111);
    gone.call(2, 2222);
    __atomic_store_n(&chains[kIndex].peers, 2, __ATOMIC_RELEASE);
    std::size_t other = 0;
    {
      const std::jthread reader([&gone, &other] {
        for (int i = 0; i < 20; ++i) {
          other += static_cast<std::size_t>(gone.sample().dependencies.size() != 2);
        }
      });
      gone.accumulators->give_up();
      const Target next(common);
    }
    REQUIRE(other == 0);
  }
}

TEST_CASE("the memory of a target can be read as long as somebody has it, whoever else is gone") {
  Memory<socket_chains> chains(kIndices);
  auto common = common_of(chains);
  Target target(common);
  target.shards[0].moments[TACHO_SEND].operations = 5;
  const std::weak_ptr<SocketCommon> alive = common;
  common.reset();
  CHECK_FALSE(alive.expired());
  target.accumulators->give_up();
  CHECK(target.sample().counters.direction[TACHO_SEND].operations == 5);
  target.accumulators.reset();
  CHECK(alive.expired());
}
