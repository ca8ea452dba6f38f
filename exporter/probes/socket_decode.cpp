#include "probes/socket_decode.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "metrics/buckets.h"
#include "probes/bracket.h"
#include "probes/histogram_decode.h"

namespace tacho::probes {
namespace {

/// a − b where both are read at slightly different times.
std::uint64_t excess(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

}  // namespace

metrics::Moments read_moments(const socket_moments& m) {
  return read_bracketed(m.begin, m.end, [&m] {
    metrics::Moments copy;
    copy.operations = load(m.operations);
    copy.bytes = load(m.bytes);
    copy.intervals = load(m.intervals);
    copy.interval_ns = load(m.interval_ns);
    copy.square_ns2 = (metrics::Uint128{load(m.square_high)} << 64) | load(m.square_low);
    copy.idle_gaps = load(m.idle_gaps);
    copy.idle_gap_ns = load(m.idle_gap_ns);
    return copy;
  });
}

void add_shard(SocketSnapshot& s, const socket_shard& shard) {
  for (std::size_t d = 0; d < TACHO_DIRECTIONS; ++d) {
    s.moments[d] += read_moments(shard.moments[d]);
  }
  // Completions before beginnings, so that the difference is never negative for long.
  s.unanswered += load(shard.unanswered);
  s.oneway += load(shard.oneway);
  s.handshakes += load(shard.handshakes);
  s.dismissed += load(shard.dismissed);
  s.unseen_replies += load(shard.unseen_replies);
  s.multiplexed_connections += load(shard.multiplexed_connections);
  s.overlapped += load(shard.overlapped_turns);
  s.aside += load(shard.aside);
  s.chosen += load(shard.chosen);
  add_histogram(s.receive, shard.receive);
  add_histogram(s.duration, shard.duration);
  add_histogram(s.service, shard.service);
  add_histogram(s.queue, shard.queue);
  s.opened += load(shard.opened);
  add_histogram(s.reply, shard.reply);
  add_histogram(s.accept_wait, shard.accept_wait);
  for (std::size_t r = 0; r < 2; ++r) {
    s.connections_closed[r] += load(shard.connections_closed[r]);
    s.connections_opened[r] += load(shard.connections_opened[r]);
    s.node_requests[r] += load(shard.node_requests[r]);
  }
  if (s.anatomy) {
    add_shard(*s.anatomy, shard);
  }
}

void add_shard(SocketSample& s, const socket_shard& shard) {
  metrics::SocketCounters& counters = s.counters;
  for (std::size_t d = 0; d < TACHO_DIRECTIONS; ++d) {
    counters.direction[d] += read_moments(shard.moments[d]);
  }
  auto& turns = counters.turns ? *counters.turns : counters.turns.emplace();
  turns.overlapped += load(shard.overlapped_turns);
  turns.sampled += load(shard.sampled_turns);
  turns.repeated += load(shard.repeated_turns);
  turns.one_way += load(shard.oneway);
  turns.calls_overlapped += load(shard.calls_overlapped);
  turns.calls_sampled += load(shard.sampled_calls);
  turns.calls_repeated += load(shard.repeated_calls);
  counters.queue_ns = counters.queue_ns.value_or(0) + load(shard.queue.sum_ns);
  // Completions before beginnings, as in a snapshot.
  s.in_flight -= load(shard.unanswered) + load(shard.dismissed);
  add_histogram(s.duration, shard.duration);
  s.in_flight += load(shard.opened);
  s.server_connections -= load(shard.connections_closed[0]);
  s.server_connections += load(shard.connections_opened[0]);
  s.own_ns += load(shard.own_ns);
  s.followed += load(shard.followed);
  if (s.anatomy) {
    add_shard(*s.anatomy, shard);
  }
}

void complete(SocketSample& s, std::vector<Dependency> dependencies) {
  auto& turns = s.counters.turns ? *s.counters.turns : s.counters.turns.emplace();
  turns.requests = metrics::total(s.duration);
  s.in_flight = not_negative(s.in_flight - turns.requests);
  s.server_connections = not_negative(s.server_connections);
  for (const Dependency& dependency : dependencies) {
    turns.calls += metrics::total(dependency.duration);
  }
  s.dependencies = std::move(dependencies);
}

std::uint64_t requests(const SocketSnapshot& s) {
  return metrics::total(s.duration);
}

std::uint64_t in_flight(const SocketSnapshot& s) {
  return excess(s.opened, requests(s) + s.unanswered + s.dismissed);
}

metrics::Histogram receive_times(const SocketSnapshot& s) {
  metrics::Histogram all = s.receive;
  all.slots.front() += excess(requests(s), metrics::total(s.receive));
  return all;
}

std::uint64_t active_connections(const SocketSnapshot& s, socket_role role) {
  const std::size_t index = role == TACHO_ROLE_CLIENT ? 1 : 0;
  return excess(s.connections_opened.at(index), s.connections_closed.at(index));
}

}  // namespace tacho::probes
