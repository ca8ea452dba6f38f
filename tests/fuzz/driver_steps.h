#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>

#include "fuzz/life.h"

namespace tacho::fuzz {

/// Slots of an agent: connections, and behind them the listening sockets by kind.
inline constexpr int kFirstListener = 1000;

inline int listener_of(How kind) {
  return kFirstListener + static_cast<int>(kind);
}

inline bool is_send(Act act) {
  return act == Act::client_send || act == Act::server_send;
}

inline bool is_read(Act act) {
  return act == Act::client_read || act == Act::server_read;
}

/// Throws if they differ.
inline void must_be(const char* what, std::int64_t wanted, std::int64_t got) {
  if (wanted != got) {
    throw std::runtime_error(fmt::format("{}: {} wanted, {} got", what, wanted, got));
  }
}

}  // namespace tacho::fuzz
