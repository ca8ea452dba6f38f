#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "bpf/poll.h"
#include "metrics/family.h"
#include "metrics/value.h"
#include "metrics/window.h"
#include "probes/sample.h"

namespace tacho::probes {

/// The parts of a target's poll block that must fit together; sums over shards (modulo 2^64).
struct PollTimes {
  std::uint64_t completed_ns = 0;
  std::uint64_t waiters = 0;
  std::uint64_t started_ns = 0;
  bool in_step =
      true;  ///< false: one wait may be counted without its start, and total_ns() is off by the machine's uptime

  /// Time in completed waits and the elapsed part of those in progress.
  [[nodiscard]] std::uint64_t total_ns(std::int64_t now_ns) const;
  /// Threads that are waiting.
  [[nodiscard]] std::uint64_t waiting() const;
};

/// All shards of a target's poll block added up.
struct PollSnapshot {
  metrics::Histogram duration;  ///< of all calls
  std::array<std::uint64_t, TACHO_POLL_OUTCOMES> completed{};
  PollTimes times;
  std::uint64_t threads = 0;
  std::uint64_t own_ns = 0;  ///< estimated time of the probe's programs for the target
};

void add_shard(PollTimes& times, const poll_shard& shard);
void add_shard(PollSnapshot& snapshot, const poll_shard& shard);

/// @param idle_ns as that of decode()
PollSample sample_of(const PollSnapshot& snapshot, std::uint64_t idle_ns);

std::span<const metrics::Family> poll_families();

/// Values of poll_families().
/// @param idle_ns thread time spent waiting so far; never falls
void decode(const PollSnapshot& snapshot, std::uint64_t idle_ns, const metrics::Gauges& gauges, metrics::Row& row);

}  // namespace tacho::probes
