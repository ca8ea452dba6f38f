#pragma once

#include <memory>
#include <vector>

#include "kernel/variants.h"
#include "probes/probe.h"

namespace tacho::probes {

/// The states of threads: running, runnable, off CPU and in which system call (bpf/sched.bpf.c); and the CPUs that they
/// may use.
Result<std::unique_ptr<Probe>> load_sched_probe(const config::Config& config, const Environment& environment);

/// The compilations of bpf/sched.bpf.c, the best first.
std::vector<kernel::Variant> sched_variants();

}  // namespace tacho::probes
