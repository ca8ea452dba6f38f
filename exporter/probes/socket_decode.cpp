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

using metrics::Family;
using metrics::Type;
using metrics::Value;

constexpr std::array<std::string_view, 2> kDirections{"send", "receive"};
constexpr std::array<std::string_view, 2> kRoles{"server", "client"};

constexpr std::array kFamilies{
    Family{"tacho_socket_operations_total", Type::counter, "", "Successful socket operations.", "direction",
           kDirections},
    Family{"tacho_socket_bytes_total", Type::counter, "", "Payload bytes of successful socket operations.", "direction",
           kDirections},
    Family{"tacho_socket_intervals_total", Type::counter, "",
           "Intervals between consecutive operations of the whole target, all threads merged.", "direction",
           kDirections},
    Family{"tacho_socket_interval_seconds_total", Type::counter, "seconds", "Sum of the intervals.", "direction",
           kDirections},
    Family{"tacho_socket_interval_seconds_squared_total", Type::counter, "", "Sum of the squared intervals, in s².",
           "direction", kDirections},
    Family{"tacho_socket_idle_gaps_total", Type::counter, "",
           "Intervals above the idle limit; they are not counted as intervals.", "direction", kDirections},
    Family{"tacho_socket_idle_gap_seconds_total", Type::counter, "seconds", "Sum of the idle gaps.", "direction",
           kDirections},
    Family{"tacho_observed_rps",
           Type::gauge,
           "",
           "Sends per second over {window} or the last 2048 sends, whichever is longer (ISPASS 2024, eq. 1). "
           "Requests per second where a reply is one send; see tacho_requests_total.",
           "",
           {}},
    Family{"tacho_inter_syscall_variance_seconds_squared", Type::gauge, "",
           "Variance of the intervals over {window} (ISPASS 2024, eq. 2), in s².", "direction", kDirections},
    Family{"tacho_inter_syscall_cv2", Type::gauge, "",
           "Squared coefficient of variation of the intervals over {window}: variance / mean².", "direction",
           kDirections},
    Family{"tacho_requests_total",
           Type::counter,
           "",
           "Requests answered: turns on server sockets, completed by the first send after a receive.",
           "",
           {}},
    Family{"tacho_request_duration_seconds",
           Type::histogram,
           "seconds",
           "Time from the arrival of a request to the first byte of its reply. A request arrives with the last data "
           "that the server had to wait for.",
           "",
           {},
           true},
    Family{"tacho_request_queue_seconds",
           Type::histogram,
           "seconds",
           "Time that a request is unread: from the arrival of the last data that the server had to wait for to the "
           "read of that data.",
           "",
           {}},
    Family{"tacho_request_receive_seconds",
           Type::histogram,
           "seconds",
           "Time in which a request arrives: from its first data to the last data that the server had to wait for; 0 "
           "if it arrives at once.",
           "",
           {}},
    Family{"tacho_request_service_seconds",
           Type::histogram,
           "seconds",
           "Time from the last read of a request to the first byte of its reply.",
           "",
           {}},
    Family{"tacho_request_reply_seconds",
           Type::histogram,
           "seconds",
           "Time from the first to the last send of a reply. It is counted when the next request is read or the "
           "connection ends.",
           "",
           {}},
    Family{"tacho_requests_in_flight", Type::gauge, "", "Requests that have been read and not yet answered.", "", {}},
    Family{"tacho_requests_unanswered_total",
           Type::counter,
           "",
           "Connections that ended with a request unanswered.",
           "",
           {}},
    Family{"tacho_oneway_messages_total",
           Type::counter,
           "",
           "Messages to servers that got no reply: on a stream, another message followed after a pause; a datagram was "
           "not answered within seconds.",
           "",
           {}},
    Family{"tacho_handshakes_total",
           Type::counter,
           "",
           "Turns of TLS handshakes on server sockets; they are not counted as requests.",
           "",
           {}},
    Family{"tacho_connections_total", Type::counter, "", "Connections accepted (server) and opened (client).", "role",
           kRoles},
    Family{"tacho_multiplexed_connections_total",
           Type::counter,
           "",
           "Server connections that carry several requests at a time and are not followed frame by frame. They are "
           "detected by HTTP/2's preface, by its choice in a TLS handshake, or by requests that overlap.",
           "",
           {}},
    Family{"tacho_connections_active", Type::gauge, "", "Connections that are open now.", "role", kRoles},
    Family{
        "tacho_connection_accept_wait_seconds",
        Type::histogram,
        "seconds",
        "Time from the establishment of a connection to the server's first read. It includes the client's own pause.",
        "",
        {}},
    Family{"tacho_node_requests_total", Type::counter, "",
           "Requests from the node itself that the target has answered (server), and calls that the node itself made "
           "in the target (client), where exclude_clients leaves them out. No other family counts them.",
           "role", kRoles},
};

constexpr std::array kDependencyFamilies{
    Family{"tacho_dependency_calls_total",
           Type::counter,
           "",
           "Calls of this target that were answered: turns on its client sockets, by peer. Peers beyond "
           "limits.max_peers are counted as other.",
           "peer",
           {}},
    Family{"tacho_dependency_duration_seconds",
           Type::histogram,
           "seconds",
           "Time from the last send of a call to the first byte of the answer.",
           "peer",
           {}},
    Family{"tacho_request_dependency_seconds_total",
           Type::counter,
           "seconds",
           "Time that requests spent in calls: from the last send of a call to the read of its answer, by threads that "
           "had read a request and not answered it. Absent where there was none.",
           "peer",
           {}},
};

const auto& all_families() {
  static const auto families = [] {
    std::vector<Family> all(kFamilies.begin(), kFamilies.end());
    all.insert(all.end(), anatomy_families().begin(), anatomy_families().end());
    all.insert(all.end(), kDependencyFamilies.begin(), kDependencyFamilies.end());
    return all;
  }();
  return families;
}

std::int64_t nanoseconds(std::uint64_t ns) {
  return static_cast<std::int64_t>(ns);
}

/// a − b where both are read at slightly different times.
std::uint64_t excess(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

}  // namespace

std::span<const Family> socket_families() {
  return all_families();
}

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
  s.multiplexed_connections += load(shard.multiplexed_connections);
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

void decode(const SocketSnapshot& s, std::span<const Dependency> dependencies, const metrics::Gauges& gauges,
            metrics::Row& row) {
  const auto each = [&](auto value_of) {
    for (std::size_t d = 0; d < TACHO_DIRECTIONS; ++d) {
      row.values.push_back(value_of(s.moments[d]));
    }
  };
  using metrics::Moments;
  each([](const Moments& m) { return Value::count(m.operations); });
  each([](const Moments& m) { return Value::count(m.bytes); });
  each([](const Moments& m) { return Value::count(m.intervals); });
  each([](const Moments& m) { return Value::nanoseconds(m.interval_ns); });
  each([](const Moments& m) { return Value::number(metrics::seconds_squared(m.square_ns2)); });
  each([](const Moments& m) { return Value::count(m.idle_gaps); });
  each([](const Moments& m) { return Value::nanoseconds(nanoseconds(m.idle_gap_ns)); });
  row.values.push_back(Value::number(gauges.observed_rps));
  for (const double variance : gauges.variance) {
    row.values.push_back(Value::number(variance));
  }
  for (const double cv2 : gauges.cv2) {
    row.values.push_back(Value::number(cv2));
  }
  row.values.push_back(Value::count(requests(s)));
  row.fine.push_back(s.duration);
  row.histograms.insert(row.histograms.end(), {s.queue, receive_times(s), s.service, s.reply});
  row.values.push_back(Value::count(in_flight(s)));
  row.values.push_back(Value::count(s.unanswered));
  row.values.push_back(Value::count(s.oneway));
  row.values.push_back(Value::count(s.handshakes));
  for (const std::uint64_t opened : s.connections_opened) {
    row.values.push_back(Value::count(opened));
  }
  row.values.push_back(Value::count(s.multiplexed_connections));
  for (const socket_role role : {TACHO_ROLE_SERVER, TACHO_ROLE_CLIENT}) {
    row.values.push_back(Value::count(active_connections(s, role)));
  }
  row.histograms.push_back(s.accept_wait);
  for (const std::uint64_t count : s.node_requests) {
    row.values.push_back(Value::count(count));
  }
  decode(s.anatomy, requests(s), row);
  const std::size_t calls = all_families().size() - kDependencyFamilies.size();
  for (const Dependency& dependency : dependencies) {
    row.dynamic.push_back(
        {calls, dependency.peer, Value::count(metrics::total(dependency.duration)), metrics::Histogram{}});
    row.dynamic.push_back({calls + 1, dependency.peer, Value{}, dependency.duration});
    if (dependency.in_line_ns > 0) {
      row.dynamic.push_back(
          {calls + 2, dependency.peer, Value::nanoseconds(nanoseconds(dependency.in_line_ns)), metrics::Histogram{}});
    }
  }
}

}  // namespace tacho::probes
