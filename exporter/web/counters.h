#pragma once

#include <atomic>
#include <cstdint>

namespace tacho::web {

/// Connections since the start; each only grows, before the client can see why.
struct GateCounters {
  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> timed_out = 0;  ///< closed: no whole request in time
  std::atomic<std::uint64_t> displaced = 0;  ///< closed before the answer: too many others
  std::atomic<std::uint64_t> cut_off = 0;    ///< closed while the answer went out: the client took too little of it
  std::atomic<std::uint64_t> refused = 0;    ///< answered 503 or 429: too many requests in line, or in a time
  std::atomic<std::uint64_t> open = 0;       ///< now
};

}  // namespace tacho::web
