#pragma once

#include <cstdint>
#include <vector>

namespace tacho::targets {

/// What the programs are told about a target.
struct TargetSettings {
  std::vector<std::uint16_t> ports;  ///< only server sockets on these, at most TACHO_PORTS_PER_TARGET; empty: all
  bool http2 = false;                ///< requests of HTTP/2 connections are counted by their frames
};

}  // namespace tacho::targets
