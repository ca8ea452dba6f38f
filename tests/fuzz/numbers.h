#pragma once

#include <map>
#include <string>
#include <string_view>

#include "kernel/support/page.h"

namespace tacho::fuzz {

inline constexpr std::string_view kSendOperations = "sends";
inline constexpr std::string_view kReceiveOperations = "receives";
inline constexpr std::string_view kSentBytes = "bytes sent";
inline constexpr std::string_view kReceivedBytes = "bytes received";
inline constexpr std::string_view kRequests = "requests";
inline constexpr std::string_view kUnanswered = "unanswered";
inline constexpr std::string_view kOneway = "one-way messages";
inline constexpr std::string_view kHandshakes = "handshakes";
inline constexpr std::string_view kInFlight = "in flight";
inline constexpr std::string_view kDuration = "sum of durations";
inline constexpr std::string_view kQueue = "sum of queue times";
inline constexpr std::string_view kReceive = "sum of receive times";
inline constexpr std::string_view kService = "sum of service times";
inline constexpr std::string_view kServerConnections = "connections accepted";
inline constexpr std::string_view kClientConnections = "connections opened";
inline constexpr std::string_view kActiveServer = "accepted connections active";
inline constexpr std::string_view kActiveClient = "opened connections active";
inline constexpr std::string_view kCalls = "calls";
inline constexpr std::string_view kCallDuration = "sum of calls' durations";

/// What a page says of the target in a cgroup, by the names above.
using Numbers = std::map<std::string_view, double>;

Numbers read_numbers(const kernel_test::Page& page, const std::string& cgroup);

}  // namespace tacho::fuzz
