#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bpf/socket.h"
#include "metrics/family.h"
#include "metrics/moments.h"
#include "metrics/value.h"
#include "probes/anatomy.h"
#include "probes/sample.h"

namespace tacho::probes {

/// All shards of a target's socket block added up.
struct SocketSnapshot {
  std::array<metrics::Moments, TACHO_DIRECTIONS> moments;
  metrics::Histogram queue;
  metrics::Histogram receive;  ///< of requests that came in more than one piece
  metrics::Histogram service;
  metrics::FineHistogram duration;
  metrics::Histogram reply;
  metrics::Histogram accept_wait;
  std::uint64_t opened = 0;  ///< turns that count
  std::uint64_t unanswered = 0;
  std::uint64_t oneway = 0;
  std::uint64_t handshakes = 0;
  std::uint64_t dismissed = 0;       ///< turns opened that were no requests after all, or
  std::uint64_t unseen_replies = 0;  ///< were answered, and no hook has seen by whom
  std::uint64_t multiplexed_connections = 0;
  std::uint64_t overlapped = 0;  ///< turns in which more data came before the reply
  std::uint64_t aside = 0;       ///< operations on servers' connections whose turns are not followed
  std::uint64_t chosen = 0;      ///< meanwhile, on the others
  std::array<std::uint64_t, 2> connections_opened{};  ///< server, client
  std::array<std::uint64_t, 2> connections_closed{};
  std::array<std::uint64_t, 2> node_requests{};  ///< left out of all the others
  std::optional<Anatomy> anatomy;                ///< of the requests whose threads are known; set if there are any
};

/// Adds a shard that programs may be changing.
void add_shard(SocketSnapshot& snapshot, const socket_shard& shard);

metrics::Moments read_moments(const socket_moments& moments);
void add_shard(SocketSample& sample, const socket_shard& shard);
/// Completes a sample to which all shards were added, with the dependencies of the target.
void complete(SocketSample& sample, std::vector<Dependency> dependencies);

std::span<const metrics::Family> socket_families();

/// Turns completed so far.
std::uint64_t requests(const SocketSnapshot& snapshot);
/// Turns that are open now.
std::uint64_t in_flight(const SocketSnapshot& snapshot);
/// How long requests took to arrive; 0 for those that arrived at once.
metrics::Histogram receive_times(const SocketSnapshot& snapshot);
/// @param role TACHO_ROLE_SERVER or TACHO_ROLE_CLIENT
std::uint64_t active_connections(const SocketSnapshot& snapshot, socket_role role);

/// Values of socket_families().
void decode(const SocketSnapshot& snapshot, std::span<const Dependency> dependencies, const metrics::Gauges& gauges,
            metrics::Row& row);

}  // namespace tacho::probes
