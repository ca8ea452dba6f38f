#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::top {

/// One target as /api/v1/targets reports it. NaN: unavailable.
struct Row {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  std::string id;
  std::string name;                        ///< with the labels that distinguish namesakes; printable
  double rate = 0;                         ///< requests per second
  double last = 0;                         ///< the same, of the last second
  double p50 = kUnknown;                   ///< seconds
  double p99 = kUnknown;                   ///< seconds
  double saturation = kUnknown;            ///< 0 … 1
  double queue_share = kUnknown;           ///< 0 … 1
  double idle_share = kUnknown;            ///< 0 … 1
  std::optional<std::uint64_t> in_flight;  ///< none: unavailable
  std::string calls_to;                    ///< the peer called most, and how many more there are; printable
  std::string conditions;                  ///< separated by spaces
};

/// What one request for the table brings.
struct Frame {
  std::string instance;
  std::string version;
  std::uint64_t tick = 0;
  std::uint64_t targets = 0;
  std::uint64_t matched = 0;
  double rate = 0;
  std::uint64_t lost_events = 0;
  std::uint64_t unattached_hooks = 0;
  std::vector<std::string> absent;
  std::vector<Row> rows;
};

/// Of answers that cannot be read.
std::unexpected<Error> not_a_tacho();

/// Reads the answer to /api/v1/targets; an error if it is another program's.
Result<Frame> parse_frame(const std::string& body);

}  // namespace tacho::top
