#include <vector>

#include "metrics/buckets.h"
#include "metrics/entry.h"
#include "probes/socket_decode.h"

// The families of the socket probe, each with what a target has of it.

namespace tacho::probes {
namespace {

using metrics::Family;
using metrics::Moments;
using metrics::Sink;
using metrics::Type;
using metrics::Value;

constexpr std::array<std::string_view, 2> kDirections{"send", "receive"};
constexpr std::array<std::string_view, 2> kRoles{"server", "client"};

// The hooks without which a family would be untrue.
using Hooks = std::string_view;
constexpr std::array kOperations{Hooks{"send"}, Hooks{"receive"}};  // by direction
constexpr std::array kSends{Hooks{"send"}};
constexpr std::array kTurns{Hooks{"receive"}, Hooks{"send"}};
constexpr std::array kArrivals{Hooks{"receive"}, Hooks{"send"}, Hooks{"data_ready"}};
constexpr std::array kEnds{Hooks{"receive"}, Hooks{"send"}, Hooks{"state_change"}};
constexpr std::array kSwept{Hooks{"receive"}, Hooks{"send"}, Hooks{"sweep"}};
constexpr std::array kEndsAndSwept{Hooks{"receive"}, Hooks{"send"}, Hooks{"state_change"}, Hooks{"sweep"}};
constexpr std::array kConnections{Hooks{"state_change"}};
constexpr std::array kFirstReads{Hooks{"receive"}, Hooks{"state_change"}};

struct SocketSource {
  const SocketSnapshot& snapshot;
  const metrics::Gauges& gauges;
};
using SocketEntry = metrics::Entry<SocketSource>;

Value seconds(std::uint64_t ns) {
  return Value::nanoseconds(static_cast<std::int64_t>(ns));
}

constexpr std::array kEntries{
    SocketEntry{Family{"tacho_socket_operations_total", Type::counter, "", "Successful socket operations.", "direction",
                       kDirections}
                    .each_seen_by(kOperations),
                [](const SocketSource& s, Sink& out) {
                  out.each(s.snapshot.moments, [](const Moments& m) { return Value::count(m.operations); });
                }},
    SocketEntry{Family{"tacho_socket_bytes_total", Type::counter, "", "Payload bytes of successful socket operations.",
                       "direction", kDirections}
                    .each_seen_by(kOperations),
                [](const SocketSource& s, Sink& out) {
                  out.each(s.snapshot.moments, [](const Moments& m) { return Value::count(m.bytes); });
                }},
    SocketEntry{Family{"tacho_socket_intervals_total", Type::counter, "",
                       "Intervals between consecutive operations of the whole target, all threads merged.", "direction",
                       kDirections}
                    .each_seen_by(kOperations),
                [](const SocketSource& s, Sink& out) {
                  out.each(s.snapshot.moments, [](const Moments& m) { return Value::count(m.intervals); });
                }},
    SocketEntry{Family{"tacho_socket_interval_seconds_total", Type::counter, "seconds", "Sum of the intervals.",
                       "direction", kDirections}
                    .each_seen_by(kOperations),
                [](const SocketSource& s, Sink& out) {
                  out.each(s.snapshot.moments, [](const Moments& m) { return Value::nanoseconds(m.interval_ns); });
                }},
    SocketEntry{Family{"tacho_socket_interval_seconds_squared_total", Type::counter, "",
                       "Sum of the squared intervals, in s².", "direction", kDirections}
                    .each_seen_by(kOperations),
                [](const SocketSource& s, Sink& out) {
                  out.each(s.snapshot.moments,
                           [](const Moments& m) { return Value::number(metrics::seconds_squared(m.square_ns2)); });
                }},
    SocketEntry{Family{"tacho_socket_idle_gaps_total", Type::counter, "",
                       "Intervals above the idle limit; they are not counted as intervals.", "direction", kDirections}
                    .each_seen_by(kOperations)
                    .on_first_event(),
                [](const SocketSource& s, Sink& out) {
                  out.each(s.snapshot.moments, [](const Moments& m) { return Value::count(m.idle_gaps); });
                }},
    SocketEntry{Family{"tacho_socket_idle_gap_seconds_total", Type::counter, "seconds", "Sum of the idle gaps.",
                       "direction", kDirections}
                    .each_seen_by(kOperations)
                    .on_first_event(),
                [](const SocketSource& s, Sink& out) {
                  out.each(s.snapshot.moments, [](const Moments& m) { return seconds(m.idle_gap_ns); });
                }},
    SocketEntry{
        Family{"tacho_observed_rps",
               Type::gauge,
               "",
               "Sends per second over {window} or the last 2048 sends, whichever is longer (ISPASS 2024, eq. 1). "
               "Requests per second where a reply is one send; see tacho_requests_total.",
               "",
               {}}
            .seen_by(kSends),
        [](const SocketSource& s, Sink& out) { out.add(Value::number(s.gauges.observed_rps)); }},
    SocketEntry{Family{"tacho_inter_syscall_variance_seconds_squared", Type::gauge, "",
                       "Variance of the intervals over {window} (ISPASS 2024, eq. 2), in s².", "direction", kDirections}
                    .each_seen_by(kOperations)
                    .on_first_event(),
                [](const SocketSource& s, Sink& out) { out.each(s.gauges.variance, Value::number); }},
    SocketEntry{Family{"tacho_inter_syscall_cv2", Type::gauge, "",
                       "Squared coefficient of variation of the intervals over {window}: variance / mean².",
                       "direction", kDirections}
                    .each_seen_by(kOperations)
                    .on_first_event(),
                [](const SocketSource& s, Sink& out) { out.each(s.gauges.cv2, Value::number); }},
    SocketEntry{Family{"tacho_requests_total",
                       Type::counter,
                       "",
                       "Requests answered: turns on server sockets, completed by the first send after a receive.",
                       "",
                       {}}
                    .seen_by(kTurns),
                [](const SocketSource& s, Sink& out) { out.add(Value::count(requests(s.snapshot))); }},
    SocketEntry{
        Family{
            "tacho_request_duration_seconds",
            Type::histogram,
            "seconds",
            "Time from the arrival of a request to the first byte of its reply. A request arrives with the last data "
            "that the server had to wait for.",
            "",
            {},
            true}
            .seen_by(kTurns),
        [](const SocketSource& s, Sink& out) { out.add(s.snapshot.duration); }},
    SocketEntry{
        Family{
            "tacho_request_queue_seconds",
            Type::histogram,
            "seconds",
            "Time that a request is unread: from the arrival of the last data that the server had to wait for to the "
            "read of that data.",
            "",
            {}}
            .seen_by(kArrivals)
            .with(metrics::Detail::coarse),
        [](const SocketSource& s, Sink& out) { out.add(s.snapshot.queue); }},
    SocketEntry{
        Family{
            "tacho_request_receive_seconds",
            Type::histogram,
            "seconds",
            "Time in which a request arrives: from its first data to the last data that the server had to wait for; 0 "
            "if it arrives at once.",
            "",
            {}}
            .seen_by(kArrivals)
            .with(metrics::Detail::mean)
            .on_first_event(),
        [](const SocketSource& s, Sink& out) { out.add(receive_times(s.snapshot)); }},
    SocketEntry{Family{"tacho_request_service_seconds",
                       Type::histogram,
                       "seconds",
                       "Time from the last read of a request to the first byte of its reply.",
                       "",
                       {}}
                    .seen_by(kTurns)
                    .with(metrics::Detail::mean)
                    .on_first_event(),
                [](const SocketSource& s, Sink& out) { out.add(s.snapshot.service); }},
    SocketEntry{
        Family{"tacho_request_reply_seconds",
               Type::histogram,
               "seconds",
               "Time from the first to the last send of a reply. It is counted when the next request is read, the "
               "connection ends, or more is sent after 5 s in which nothing was, though there was room.",
               "",
               {}}
            .seen_by(kTurns)
            .with(metrics::Detail::mean)
            .on_first_event(),
        [](const SocketSource& s, Sink& out) { out.add(s.snapshot.reply); }},
    SocketEntry{
        Family{
            "tacho_requests_in_flight", Type::gauge, "", "Requests that have been read and not yet answered.", "", {}}
            .seen_by(kEndsAndSwept),
        [](const SocketSource& s, Sink& out) { out.add(Value::count(in_flight(s.snapshot))); }},
    SocketEntry{Family{"tacho_requests_unanswered_total",
                       Type::counter,
                       "",
                       "Connections that ended with a request unanswered.",
                       "",
                       {}}
                    .seen_by(kEnds),
                [](const SocketSource& s, Sink& out) { out.add(Value::count(s.snapshot.unanswered)); }},
    SocketEntry{Family{"tacho_oneway_messages_total",
                       Type::counter,
                       "",
                       "Messages to servers that got no reply: on a stream, another message followed after a pause; a "
                       "datagram was "
                       "not answered within seconds.",
                       "",
                       {}}
                    .seen_by(kSwept)
                    .on_first_event(),
                [](const SocketSource& s, Sink& out) { out.add(Value::count(s.snapshot.oneway)); }},
    SocketEntry{
        Family{"tacho_unseen_replies_total",
               Type::counter,
               "",
               "Requests that the target has read, answered by a process that is not watched or unseen by tacho; they "
               "are known when their connections end, and no other family counts them.",
               "",
               {}}
            .seen_by(kEnds)
            .on_first_event(),
        [](const SocketSource& s, Sink& out) { out.add(Value::count(s.snapshot.unseen_replies)); }},
    SocketEntry{Family{"tacho_handshakes_total",
                       Type::counter,
                       "",
                       "Turns of TLS handshakes on server sockets; they are not counted as requests.",
                       "",
                       {}}
                    .seen_by(kTurns)
                    .on_first_event(),
                [](const SocketSource& s, Sink& out) { out.add(Value::count(s.snapshot.handshakes)); }},
    SocketEntry{Family{"tacho_connections_total", Type::counter, "",
                       "Connections accepted (server) and opened (client).", "role", kRoles}
                    .seen_by(kConnections),
                [](const SocketSource& s, Sink& out) { out.each(s.snapshot.connections_opened, Value::count); }},
    SocketEntry{
        Family{"tacho_multiplexed_connections_total",
               Type::counter,
               "",
               "Server connections that carry several requests at a time and are not followed frame by frame. They are "
               "detected by HTTP/2's preface, by its choice in a TLS handshake, or by requests that overlap.",
               "",
               {}}
            .seen_by(kTurns)
            .on_first_event(),
        [](const SocketSource& s, Sink& out) { out.add(Value::count(s.snapshot.multiplexed_connections)); }},
    SocketEntry{
        Family{"tacho_connections_active", Type::gauge, "", "Connections that are open now.", "role", kRoles}.seen_by(
            kConnections),
        [](const SocketSource& s, Sink& out) {
          for (const socket_role role : {TACHO_ROLE_SERVER, TACHO_ROLE_CLIENT}) {
            out.add(Value::count(active_connections(s.snapshot, role)));
          }
        }},
    SocketEntry{
        Family{"tacho_connection_accept_wait_seconds",
               Type::histogram,
               "seconds",
               "Time from the establishment of a connection to the server's first read. It includes the client's own "
               "pause.",
               "",
               {}}
            .seen_by(kFirstReads)
            .with(metrics::Detail::mean)
            .on_first_event(),
        [](const SocketSource& s, Sink& out) { out.add(s.snapshot.accept_wait); }},
    SocketEntry{
        Family{
            "tacho_node_requests_total", Type::counter, "",
            "Requests from the node itself that the target has answered (server), and calls that the node itself made "
            "in the target (client), where exclude_clients leaves them out. No other family counts them.",
            "role", kRoles}
            .seen_by(kTurns)
            .on_first_event(),
        [](const SocketSource& s, Sink& out) { out.each(s.snapshot.node_requests, Value::count); }},
};

using Dependencies = std::span<const Dependency>;
using DependencyEntry = metrics::Entry<Dependencies>;

constexpr std::array kDependencyEntries{
    DependencyEntry{
        Family{"tacho_dependency_calls_total",
               Type::counter,
               "",
               "Calls of this target that were answered: turns on its client sockets, by peer. Peers beyond "
               "limits.max_peers are counted as other.",
               "peer",
               {}}
            .seen_by(kTurns)
            .on_first_event(),
        [](const Dependencies& s, Sink& out) {
          for (const Dependency& peer : s) {
            out.add(peer.peer, Value::count(metrics::total(peer.duration)));
          }
        }},
    DependencyEntry{Family{"tacho_dependency_duration_seconds",
                           Type::histogram,
                           "seconds",
                           "Time from the last send of a call to the first byte of the answer.",
                           "peer",
                           {}}
                        .seen_by(kTurns)
                        .with(metrics::Detail::coarse)
                        .on_first_event(),
                    [](const Dependencies& s, Sink& out) {
                      for (const Dependency& peer : s) {
                        out.add(peer.peer, peer.duration);
                      }
                    }},
    DependencyEntry{Family{"tacho_request_dependency_seconds_total",
                           Type::counter,
                           "seconds",
                           "Time that requests spent in calls: from the last send of a call to the read of its answer, "
                           "by threads that "
                           "had read a request and not answered it. Absent where there was none.",
                           "peer",
                           {}}
                        .seen_by(kTurns)
                        .on_first_event(),
                    [](const Dependencies& s, Sink& out) {
                      for (const Dependency& peer : s) {
                        out.add(peer.peer, seconds(peer.in_line_ns));
                      }
                    }},
};

const auto& all_families() {
  static const auto families = [] {
    std::vector<Family> all;
    const auto add = [&all](std::span<const Family> some) { all.insert(all.end(), some.begin(), some.end()); };
    add(metrics::families_of(kEntries));
    add(anatomy_families());
    add(metrics::families_of(kDependencyEntries));
    return all;
  }();
  return families;
}

}  // namespace

std::span<const Family> socket_families() {
  return all_families();
}

void decode(const SocketSnapshot& s, std::span<const Dependency> dependencies, const metrics::Gauges& gauges,
            metrics::Row& row) {
  metrics::append_all(kEntries, {.snapshot = s, .gauges = gauges}, row);
  decode(s.anatomy, requests(s), row);
  metrics::append_all(kDependencyEntries, dependencies, row, kEntries.size() + anatomy_families().size());
}

}  // namespace tacho::probes
