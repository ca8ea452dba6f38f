#include "scrape/condition_table.h"

#include <algorithm>
#include <array>

namespace tacho::scrape {
namespace {

using Names = std::string_view;

/// Both lists as one, sorted.
template <std::size_t A, std::size_t B>
consteval std::array<Names, A + B> joined(const std::array<Names, A>& a, const std::array<Names, B>& b) {
  std::array<Names, A + B> all;
  std::ranges::copy(a, all.begin());
  std::ranges::copy(b, all.begin() + A);
  std::ranges::sort(all);
  return all;
}

constexpr std::array kMultiplexed{Names{"tacho_bottleneck"},
                                  Names{"tacho_request_duration_seconds"},
                                  Names{"tacho_request_handover_seconds"},
                                  Names{"tacho_request_queue_seconds"},
                                  Names{"tacho_request_receive_seconds"},
                                  Names{"tacho_request_reply_seconds"},
                                  Names{"tacho_request_service_seconds"},
                                  Names{"tacho_request_time_seconds_total"},
                                  Names{"tacho_requests_in_flight"},
                                  Names{"tacho_requests_total"},
                                  Names{"tacho_requests_unanswered_total"},
                                  Names{"tacho_saturation_ratio"},
                                  Names{"tacho_slow_request_time_seconds_total"}};

constexpr std::array kBusyPolling{Names{"tacho_idle_seconds_total"}, Names{"tacho_poll_duration_mean_seconds"}};

constexpr std::array kFewSamples{Names{"tacho_inter_syscall_cv2"},
                                 Names{"tacho_inter_syscall_variance_seconds_squared"}, Names{"tacho_observed_rps"}};

constexpr std::array kNoPoll{Names{"tacho_idle_seconds_total"}, Names{"tacho_poll_duration_mean_seconds"},
                             Names{"tacho_poll_waiters"}, Names{"tacho_threads"}};

/// What several requests at a time make untrue, and what else is counted.
constexpr auto kLostEvents =
    joined(kMultiplexed, std::array{Names{"tacho_connections_active"}, Names{"tacho_connections_total"},
                                    Names{"tacho_dependency_calls_total"}, Names{"tacho_dependency_duration_seconds"},
                                    Names{"tacho_idle_seconds_total"}, Names{"tacho_socket_bytes_total"},
                                    Names{"tacho_socket_operations_total"}, Names{"tacho_thread_state_seconds_total"}});

constexpr std::array kOneWay{Names{"tacho_request_receive_seconds"}, Names{"tacho_requests_in_flight"},
                             Names{"tacho_requests_unanswered_total"}};

constexpr std::array kFrozen{Names{"tacho_bottleneck"}, Names{"tacho_idle_seconds_total"},
                             Names{"tacho_poll_duration_mean_seconds"}, Names{"tacho_requests_in_flight"},
                             Names{"tacho_saturation_ratio"}};

constexpr std::array kMultiplexedCalls{Names{"tacho_dependency_calls_total"},
                                       Names{"tacho_dependency_duration_seconds"}};

constexpr std::array kUnseenPolls{Names{"tacho_poll_duration_mean_seconds"}, Names{"tacho_poll_duration_seconds"}};

constexpr std::array kShed{Names{"tacho_bottleneck"},
                           Names{"tacho_idle_seconds_total"},
                           Names{"tacho_inter_syscall_cv2"},
                           Names{"tacho_inter_syscall_variance_seconds_squared"},
                           Names{"tacho_observed_rps"},
                           Names{"tacho_poll_duration_mean_seconds"},
                           Names{"tacho_poll_duration_seconds"},
                           Names{"tacho_poll_waiters"},
                           Names{"tacho_polls_total"},
                           Names{"tacho_request_dependency_seconds_total"},
                           Names{"tacho_request_handover_seconds"},
                           Names{"tacho_request_serving_total"},
                           Names{"tacho_request_time_seconds_total"},
                           Names{"tacho_slow_request_time_seconds_total"},
                           Names{"tacho_slow_requests_total"},
                           Names{"tacho_socket_idle_gap_seconds_total"},
                           Names{"tacho_socket_idle_gaps_total"},
                           Names{"tacho_socket_interval_seconds_squared_total"},
                           Names{"tacho_socket_interval_seconds_total"},
                           Names{"tacho_socket_intervals_total"}};

constexpr auto kShedRequests =
    joined(kMultiplexed, std::array{Names{"tacho_handshakes_total"}, Names{"tacho_multiplexed_connections_total"},
                                    Names{"tacho_oneway_messages_total"}, Names{"tacho_unseen_replies_total"}});

/// What begins or ends with an arrival. Where only arrivals are told of, the family is absent instead.
constexpr std::array kUnseenArrivals{Names{"tacho_bottleneck"}, Names{"tacho_dependency_duration_seconds"},
                                     Names{"tacho_request_duration_seconds"}, Names{"tacho_request_time_seconds_total"},
                                     Names{"tacho_slow_request_time_seconds_total"}};

constexpr std::array<ConditionEntry, kConditions> kTable{{
    {"multiplexed",
     "connections carry several requests at a time (pipelining, HTTP/2): requests are under-counted, and those that "
     "wait inside the target are not visible",
     kMultiplexed},
    {"busy_polling", "most polls do not wait: time spent in them is no slack", kBusyPolling},
    {"few_samples", "too few sends for their rate and for the variance of intervals", kFewSamples},
    {"no_poll", "requests are served without polling calls: idleness is unknown", kNoPoll},
    {"lost_events",
     "a probe has lost events of any target, or the kernel has skipped more than one event per thousand requests of "
     "all targets: counts may be too low",
     kLostEvents},
    {"one_way",
     "more than one in ten messages got no reply: messages in flight may need none, and a pause within a request looks "
     "like one between two requests",
     kOneWay},
    {"frozen", "the cgroup is frozen (docker pause): nothing runs, and requests that wait are not read", kFrozen},
    {"multiplexed_calls",
     "the target sends several calls before it waits for the answers: on streams calls are under-counted, and each "
     "duration is the time since the last call",
     kMultiplexedCalls},
    {"unseen_polls",
     "the scheduler observes polls, and fewer slept than half of the requests: those that returned at once are not "
     "counted, and the mean duration is an estimate",
     kUnseenPolls},
    {"shed",
     "tacho cost the target or the machine more than limits.overhead or limits.machine_overhead, and does without a "
     "part of what it tells: some of these series stand still, tacho_shed_level says which",
     kShed},
    {"shed_requests",
     "tacho_shed_level is 4 or 5, and not all requests are counted one by one: from 4 on HTTP/2 connections count "
     "their turns, which are fewer than their requests; at 5 most connections are not followed, requests are estimated "
     "by the share of operations on the others, and those in flight are only of the others",
     kShedRequests},
    {"unseen_arrivals",
     "the hook data_ready is not attached: a request begins when it is read, and a call ends when its answer is read",
     kUnseenArrivals},
}};

}  // namespace

std::span<const ConditionEntry> condition_table() {
  return kTable;
}

bool invalidates(std::string_view condition, std::string_view family) {
  const auto found = std::ranges::find(kTable, condition, &ConditionEntry::name);
  return found != kTable.end() && std::ranges::binary_search(found->invalidates, family);
}

}  // namespace tacho::scrape
