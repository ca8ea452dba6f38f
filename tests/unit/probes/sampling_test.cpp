#include "probes/sampling.h"

#include <catch2/catch.hpp>
#include <cstdint>

#include "metrics/buckets.h"

using namespace tacho::probes;

namespace {

constexpr std::size_t kSlot = 7;

/// What a target has counted when so many requests of a millisecond were followed.
SocketSnapshot after(std::uint64_t followed, std::uint64_t chosen, std::uint64_t aside, std::uint64_t open = 0) {
  SocketSnapshot snapshot;
  snapshot.duration.slots.at(kSlot) = followed;
  snapshot.duration.sum_ns = followed * 1'000'000;
  snapshot.queue.slots.at(kSlot) = followed;
  snapshot.opened = followed + open;
  snapshot.chosen = chosen;
  snapshot.aside = aside;
  return snapshot;
}

SocketSnapshot estimated(const Sampling& sampling, SocketSnapshot snapshot) {
  sampling.add_to(snapshot);
  return snapshot;
}

}  // namespace

TEST_CASE("what is followed stands for what is not, by operations") {
  Sampling sampling;
  CHECK_FALSE(sampling.active());
  sampling.begin(after(1'000, 0, 0));
  CHECK(sampling.active());
  const SocketSnapshot now = after(1'010, 20, 300, 3);
  CHECK(requests(estimated(sampling, now)) == 1'010);
  sampling.advance(now);
  const SocketSnapshot all = estimated(sampling, now);
  CHECK(requests(all) == 1'010 + 150);
  CHECK(all.duration.sum_ns == 1'160'000'000);
  CHECK(all.queue.slots.at(kSlot) == 1'160);
  CHECK(in_flight(all) == 3);
  // The same in a sample.
  SocketSample sample;
  sample.duration = now.duration;
  sample.in_flight = now.opened;
  sample.counters.queue_ns = 5;
  sampling.add_to(sample);
  complete(sample, {});
  CHECK(sample.counters.turns->requests == 1'160);
  CHECK(sample.in_flight == 3);
  // It goes on from there when all are followed again.
  sampling.end();
  CHECK_FALSE(sampling.active());
  CHECK(requests(estimated(sampling, after(1'030, 20, 300))) == 1'180);
}

TEST_CASE("of what happened while all were followed nothing is estimated") {
  Sampling sampling;
  sampling.begin(after(0, 0, 0));
  sampling.advance(after(10, 20, 300));
  sampling.end();
  sampling.begin(after(5'000, 20, 300));
  sampling.advance(after(5'000, 20, 300));
  CHECK(requests(estimated(sampling, after(5'000, 20, 300))) == 5'150);
  // Operations of chosen connections alone need no estimate.
  sampling.advance(after(5'100, 220, 300));
  CHECK(requests(estimated(sampling, after(5'100, 220, 300))) == 5'250);
}

TEST_CASE("until there was an operation on a chosen connection nothing stands for the others") {
  Sampling sampling;
  sampling.begin(after(0, 0, 0));
  CHECK(sampling.advance(after(0, 0, 0)));
  CHECK_FALSE(sampling.advance(after(0, 0, 100)));
  CHECK(requests(estimated(sampling, after(0, 0, 100))) == 0);
  CHECK_FALSE(sampling.advance(after(0, 0, 200)));
  CHECK(sampling.advance(after(1, 2, 300)));
  CHECK(requests(estimated(sampling, after(1, 2, 300))) == 151);
}

TEST_CASE("estimates never fall") {
  Sampling sampling;
  sampling.begin(after(0, 0, 0));
  std::uint64_t last = 0;
  std::uint64_t followed = 0;
  std::uint64_t chosen = 0;
  std::uint64_t aside = 0;
  for (std::uint64_t i = 1; i < 500; ++i) {
    followed += i * 7'919 % 13;
    chosen += i * 104'729 % 11;
    aside += i * 1'299'709 % 301;
    const SocketSnapshot now = after(followed, chosen, aside);
    if (i % 100 == 50) {
      sampling.advance(now);
      sampling.end();
      sampling.begin(now);
    } else {
      sampling.advance(now);
    }
    const std::uint64_t requests_now = requests(estimated(sampling, now));
    REQUIRE(requests_now >= last);
    last = requests_now;
  }
}
