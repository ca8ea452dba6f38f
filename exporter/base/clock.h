#pragma once

#include <time.h>

#include <cstdint>
#include <string_view>

namespace tacho {

/// What the time namespace of this process adds to CLOCK_MONOTONIC, in ns.
/// @param offsets as /proc/PID/timens_offsets has them (time_namespaces(7)); empty where the kernel has no such
/// namespaces
std::int64_t parse_time_offset(std::string_view offsets);

/// The clock of bpf_ktime_get_ns(), which is the same in every time namespace.
std::int64_t kernel_now_ns();

}  // namespace tacho
