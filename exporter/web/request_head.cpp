#include "web/request_head.h"

#include <civetweb.h>

namespace tacho::web {
namespace {

constexpr std::size_t kRecordHeader = 5;  // RFC 8446 §5.1: type, version, length
constexpr unsigned char kHandshakeRecord = 22;

/// Length of the TLS record that starts here, its header included.
std::size_t record_length(std::span<const char> bytes) {
  const auto high = static_cast<unsigned char>(bytes[3]);
  const auto low = static_cast<unsigned char>(bytes[4]);
  return kRecordHeader + (std::size_t{high} << 8U) + low;
}

}  // namespace

Arrival judge_arrival(std::span<const char> bytes, bool tls, bool no_more_data) {
  if (bytes.empty()) {
    return Arrival::incomplete;
  }
  if (tls && static_cast<unsigned char>(bytes[0]) != kHandshakeRecord) {
    return Arrival::plain_on_tls;
  }
  if (no_more_data || bytes.size() >= kMaxRequestHead) {
    return Arrival::complete;
  }
  const bool complete = tls ? bytes.size() >= kRecordHeader && bytes.size() >= record_length(bytes)
                            : mg_get_request_head_length(bytes.data(), static_cast<int>(bytes.size())) != 0;
  return complete ? Arrival::complete : Arrival::incomplete;
}

}  // namespace tacho::web
