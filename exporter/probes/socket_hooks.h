#pragma once

#include <span>

#include "kernel/attach_plan.h"

namespace tacho::probes {

/// The events of bpf/socket.bpf.c, with state in the sockets' own storage.
/// @param preemptible whether programs behind tracepoints may be interrupted: then each has a second chance
std::span<const kernel::Hook> socket_hooks(bool preemptible);

/// The same with state in a hash (the fallback variant): kprobes can use it, and the ends of sockets must be seen.
std::span<const kernel::Hook> socket_basic_hooks();

/// Receives that the tracepoint of neither variant covers.
std::span<const kernel::Hook> splice_hooks();

}  // namespace tacho::probes
