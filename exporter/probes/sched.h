#pragma once

#include <memory>
#include <vector>

#include "kernel/variants.h"
#include "probes/probe.h"

namespace tacho::probes {

/// What threads do: running, runnable, off CPU and in which system call (bpf/sched.bpf.c); what CPUs they may use.
Result<std::unique_ptr<Probe>> load_sched_probe(const config::Config& config, const Environment& environment);

/// What bpf/sched.bpf.c is compiled to, the best first.
std::vector<kernel::Variant> sched_variants();

}  // namespace tacho::probes
