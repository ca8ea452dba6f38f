#pragma once

#include <memory>

#include "base/result.h"
#include "probes/probe.h"

namespace tacho::probes {

/// Socket operations, turns and connections (bpf/socket.bpf.c).
Result<std::unique_ptr<Probe>> load_socket_probe(const config::Config& config, const Environment& environment);

}  // namespace tacho::probes
