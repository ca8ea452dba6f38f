#pragma once

#include <cstdint>

#include "config/config.h"
#include "kernel/bpf_object.h"
#include "probes/peers.h"
#include "probes/probe.h"

namespace tacho::probes {

/// Where the records of threads are, as bpf/socket_anatomy.bpf.h has it.
enum class ThreadRecords : std::uint8_t { unknown, in_storage, in_hash };

/// Unknown where nothing asks for them or the probe sched is not there.
ThreadRecords find_thread_records(const config::Config& config, const Environment& environment);

/// What the programs of sockets are to know of the machine and of tacho before the kernel sees them. All but `threads`
/// must outlive what is returned.
kernel::BpfObject::Setup socket_setup(const Environment& environment, const PeerNames& names, ThreadRecords threads);

}  // namespace tacho::probes
