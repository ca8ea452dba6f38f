#include "probes/recorder.h"

#include <catch2/catch.hpp>

using tacho::probes::Recorder;

namespace {

constexpr std::int64_t kMinute = 1'000;

/// From when on what ended then is written.
std::uint64_t threshold(const socket_chains& chains, std::uint64_t ended) {
  return chains.record.ns[record_threshold_of(chains.record.minute, ended)];
}

/// What the programs do after many records.
void raise(socket_chains& chains, std::uint64_t ended, std::uint64_t to) {
  chains.record.ns[record_threshold_of(chains.record.minute, ended)] = to;
}

}  // namespace

TEST_CASE("a minute has a threshold of its own, also before anybody has seen it begin") {
  Recorder recorder(1, kMinute);
  socket_chains chains{};
  Recorder::start(chains);
  CHECK(threshold(chains, 5) == 1);
  recorder.set_threshold(0, 5'100, chains);
  CHECK(chains.record.begins == 5'000);
  raise(chains, 5'200, 70);
  CHECK(threshold(chains, 5'999) == 70);
  CHECK(threshold(chains, 6'000) == 1);
  // A program that has been at it since the last minute; a look puts it right.
  raise(chains, 6'000, 90);
  recorder.set_threshold(0, 5'900, chains);
  CHECK(threshold(chains, 5'999) == 70);
  CHECK(threshold(chains, 6'000) == 1);
  raise(chains, 6'100, 40);
  recorder.set_threshold(0, 6'500, chains);
  CHECK(chains.record.begins == 6'000);
  CHECK(threshold(chains, 6'999) == 40);
  CHECK(threshold(chains, 7'000) == 1);
}

TEST_CASE("after a time in which nobody has looked a minute begins anew") {
  Recorder recorder(1, kMinute);
  socket_chains chains{};
  Recorder::start(chains);
  recorder.set_threshold(0, 1'500, chains);
  raise(chains, 1'600, 10);
  raise(chains, 2'600, 20);
  CHECK(threshold(chains, 4'600) == 20);
  recorder.set_threshold(0, 4'700, chains);
  CHECK(threshold(chains, 4'800) == 1);
  CHECK(threshold(chains, 5'800) == 1);
}

TEST_CASE("where nothing is recorded nothing is written") {
  const socket_chains chains{};
  CHECK(threshold(chains, 1) == 0);
}
