#pragma once

#include <cstdint>
#include <span>

namespace tacho::web {

/// Largest request head (request line and headers), in bytes.
inline constexpr std::size_t kMaxRequestHead = 16384;

/// What the first bytes of a connection are good for.
enum class Arrival : std::uint8_t {
  incomplete,    ///< wait for more
  complete,      ///< a worker can read, or refuse, this without waiting: a whole head, a whole first TLS record, junk
  plain_on_tls,  ///< no TLS where TLS is expected
};

/// Judges what has arrived, at most kMaxRequestHead bytes. `no_more_data`: the client has closed its direction.
Arrival judge_arrival(std::span<const char> bytes, bool tls, bool no_more_data);

}  // namespace tacho::web
