#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "metrics/value.h"
#include "metrics/window.h"
#include "probes/anatomy.h"

namespace tacho::probes {

/// Calls to one peer so far.
struct Dependency {
  std::uint32_t slot = 0;        ///< the peer's, among the target's
  std::string peer;              ///< its name, if requested
  metrics::Histogram duration;   ///< last send to first byte back
  std::uint64_t in_line_ns = 0;  ///< of calls by threads that had a request to answer
};

/// The part of the probe `socket`.
struct SocketSample {
  metrics::SocketCounters counters;
  metrics::FineHistogram duration;  ///< of requests: arrival to first byte of the reply
  std::uint64_t in_flight = 0;
  std::uint64_t server_connections = 0;  ///< that are open
  bool knows_in_flight = true;           ///< false: hooks are missing, and it would only grow
  bool knows_connections = true;         ///< the same
  std::uint64_t own_ns = 0;              ///< estimated time of the probe's programs for the target
  std::uint64_t followed = 0;            ///< operations whose frames of HTTP/2 were looked at
  std::optional<Anatomy> anatomy;        ///< time of requests by part, if available
  std::vector<Dependency> dependencies;  ///< that have a name or were called, by slot
};

/// The part of the probe `poll`.
struct PollSample {
  metrics::PollCounters counters;
  std::uint64_t waiters = 0;  ///< threads in polling calls
  std::uint64_t threads = 0;  ///< that poll and are alive
  std::uint64_t own_ns = 0;   ///< as of sockets
};

/// The part of the probe `sched`.
struct SchedSample {
  metrics::ThreadCounters counters;
  std::uint64_t runnable_ns = 0;   ///< thread time spent waiting for a CPU
  std::uint64_t throttled_ns = 0;  ///< time that a quota kept from the target's CPUs, summed over these
  std::uint64_t own_ns = 0;        ///< as of sockets
};

/// One target at one time. All values over time, and a target's values at a glance, come from samples: the sampler
/// takes one of each target once a second, a view takes one of each target that it shows. A part is present only where
/// its probe observes something: a missing one is not 0. Only the page of metrics reads more, all histograms
/// (Accumulators::read).
struct TargetSample {
  std::int64_t time_ns = 0;  ///< CLOCK_MONOTONIC, as the programs use it
  std::optional<SocketSample> socket;
  std::optional<PollSample> poll;
  std::optional<SchedSample> sched;
};

}  // namespace tacho::probes
