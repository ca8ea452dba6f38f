#pragma once

#include <cstdint>

#include "config/config.h"
#include "kernel/bpf_object.h"
#include "probes/peers.h"
#include "probes/probe.h"

namespace tacho::probes {

/// The place of the threads' records, as bpf/socket_anatomy.bpf.h defines it.
enum class ThreadRecords : std::uint8_t { unknown, in_storage, in_hash };

/// Unknown if nothing needs them or the probe sched is not there.
ThreadRecords find_thread_records(const config::Config& config, const Environment& environment);

/// The settings of the socket programs about the machine and tacho, made before the kernel loads them. All arguments
/// but `threads` must outlive the result.
kernel::BpfObject::Setup socket_setup(const Environment& environment, const PeerNames& names, ThreadRecords threads);

}  // namespace tacho::probes
