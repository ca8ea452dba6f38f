#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "kernel/variants.h"
#include "probes/probe.h"

namespace tacho::probes {

/// Socket operations, turns and connections (bpf/socket.bpf.c).
Result<std::unique_ptr<Probe>> load_socket_probe(const config::Config& config, const Environment& environment);

/// The compilations of bpf/socket.bpf.c, the best first.
std::vector<kernel::Variant> socket_variants();

}  // namespace tacho::probes
