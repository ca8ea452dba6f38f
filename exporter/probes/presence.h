#pragma once

#include <cstdint>

#include "bpf/lib/presence.h"
#include "probes/bracket.h"

namespace tacho::probes {

/// Shards of a presence (bpf/lib/presence.h) added up, modulo 2^64.
struct Presence {
  std::uint64_t threads = 0;
  std::uint64_t times_ns = 0;

  /// @param now_ns CLOCK_MONOTONIC, as the programs use it
  [[nodiscard]] std::uint64_t total_ns(std::int64_t now_ns) const {
    // Below zero also by a clock that is behind that of another CPU.
    return not_negative(threads * static_cast<std::uint64_t>(now_ns) - times_ns);
  }

  Presence& operator+=(const Presence& other) {
    threads += other.threads;
    times_ns += other.times_ns;
    return *this;
  }
};

/// Within read_bracketed().
inline Presence load(const presence& place) {
  return {load(place.threads), load(place.times_ns)};
}

}  // namespace tacho::probes
