#include "fuzz/numbers.h"

#include <array>

namespace tacho::fuzz {
namespace {

struct Source {
  std::string_view number;
  const char* sample;
  const char* label = nullptr;
  const char* value = nullptr;
};

constexpr std::array kSources{
    Source{kSendOperations, "tacho_socket_operations_total", "direction", "send"},
    Source{kReceiveOperations, "tacho_socket_operations_total", "direction", "receive"},
    Source{kSentBytes, "tacho_socket_bytes_total", "direction", "send"},
    Source{kReceivedBytes, "tacho_socket_bytes_total", "direction", "receive"},
    Source{kRequests, "tacho_requests_total"},
    Source{kUnanswered, "tacho_requests_unanswered_total"},
    Source{kHandshakes, "tacho_handshakes_total"},
    Source{kInFlight, "tacho_requests_in_flight"},
    Source{kDuration, "tacho_request_duration_seconds_sum"},
    Source{kQueue, "tacho_request_queue_seconds_sum"},
    Source{kReceive, "tacho_request_receive_seconds_sum"},
    Source{kOneway, "tacho_oneway_messages_total"},
    Source{kService, "tacho_request_service_seconds_sum"},
    Source{kServerConnections, "tacho_connections_total", "role", "server"},
    Source{kClientConnections, "tacho_connections_total", "role", "client"},
    Source{kActiveServer, "tacho_connections_active", "role", "server"},
    Source{kActiveClient, "tacho_connections_active", "role", "client"},
    Source{kCalls, "tacho_dependency_calls_total"},
    Source{kCallDuration, "tacho_dependency_duration_seconds_sum"},
};

}  // namespace

Numbers read_numbers(const kernel_test::Page& page, const std::string& cgroup) {
  Numbers numbers;
  for (const Source& source : kSources) {
    kernel_test::Labels labels{{"cgroup", cgroup}};
    if (source.label != nullptr) {
      labels[source.label] = source.value;
    }
    numbers[source.number] = page.sum(source.sample, labels);
  }
  return numbers;
}

}  // namespace tacho::fuzz
