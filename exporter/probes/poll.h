#pragma once

#include <memory>

#include "base/result.h"
#include "probes/probe.h"

namespace tacho::probes {

/// Durations of epoll_wait, poll and select (bpf/poll.bpf.c).
Result<std::unique_ptr<Probe>> load_poll_probe(const config::Config& config, const Environment& environment);

}  // namespace tacho::probes
