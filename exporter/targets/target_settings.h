#pragma once

#include <cstdint>
#include <vector>

#include "config/config.h"

namespace tacho::targets {

/// The settings of a target in the programs.
struct TargetSettings {
  std::vector<std::uint16_t> ports;  ///< only server sockets on these, at most TACHO_PORTS_PER_TARGET; empty: all
  config::Http2 http2 = config::Http2::automatic;
  config::Clients exclude_clients = config::Clients::none;
};

}  // namespace tacho::targets
