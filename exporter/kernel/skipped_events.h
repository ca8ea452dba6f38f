#pragma once

#include <cstdint>
#include <span>

#include "kernel/statistics.h"

namespace tacho::kernel {

/// Events that no program of an object was run for between two readings of its programs; one without an earlier reading
/// began at 0. The kernel skips a program on a CPU on which it is running already. Where a second program makes up for
/// the first one (NAME_again, see bpf/socket_again.bpf.h), an event is lost only if both were skipped. Which events
/// these were is unknown, so the smaller growth of the two is taken, an upper bound.
std::uint64_t skipped_events(std::span<const ProgramStatistics> before, std::span<const ProgramStatistics> now);

}  // namespace tacho::kernel
