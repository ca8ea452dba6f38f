#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "bpf/anatomy.h"
#include "bpf/sched.h"
#include "bpf/socket.h"
#include "config/config.h"
#include "metrics/family.h"
#include "metrics/value.h"

namespace tacho::probes {

/// What a thread waits for while it sleeps in a system call, by the call's number on this architecture (sched.bpf.c,
/// call_waits): a part counted from TACHO_FIRST_WAIT, or TACHO_WAITS_FOR_FILE.
std::array<std::uint8_t, TACHO_SYSCALLS> call_waits();

/// Time of a target's requests by part; sums over shards.
struct Anatomy {
  struct Parts {
    std::array<std::uint64_t, TACHO_PARTS> ns{};
    std::array<std::uint64_t, TACHO_SERVING_MODES> requests{};
  };
  Parts all;
  Parts slow;                   ///< of them, those above the threshold
  metrics::Histogram handover;  ///< of requests that were handed over
  std::uint64_t unrecorded = 0;
  std::uint64_t slow_ns = 0;  ///< a longer request is slow, now; 0: unavailable, or not requested (Look)
};

/// Adds a shard that programs may be changing.
void add_shard(Anatomy& anatomy, const socket_shard& shard);

/// The families of anatomy, in the order of decode(); they are among the socket probe's.
std::span<const metrics::Family> anatomy_families();

/// Values of anatomy_families(); without `anatomy` all are 0, and none appears.
/// @param requests all that were answered
void decode(const std::optional<Anatomy>& anatomy, std::uint64_t requests, metrics::Row& row);

/// The duration above which a target's requests are slow.
class SlowThreshold {
 public:
  /// @param durations of all requests so far
  /// @param now_ns CLOCK_MONOTONIC
  /// @return the configured threshold, else the p99 of the last half to whole minute; 0 with less than 100 requests
  std::uint64_t update(config::Duration configured, const metrics::FineHistogram& durations, std::int64_t now_ns);

 private:
  struct Past {
    std::int64_t began_ns = 0;
    metrics::FineHistogram before;   ///< the half minute before this one
    metrics::FineHistogram current;  ///< this one
  };
  std::unique_ptr<Past> past_;  // made with the first request
};

}  // namespace tacho::probes
