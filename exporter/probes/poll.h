#pragma once

#include <memory>
#include <vector>

#include "base/result.h"
#include "kernel/variants.h"
#include "probes/probe.h"

namespace tacho::probes {

/// Durations of epoll_wait, poll and select (bpf/poll.bpf.c).
Result<std::unique_ptr<Probe>> load_poll_probe(const config::Config& config, const Environment& environment);

/// The compilations of bpf/poll.bpf.c, the best first.
std::vector<kernel::Variant> poll_variants();

}  // namespace tacho::probes
