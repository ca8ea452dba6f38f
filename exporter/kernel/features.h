#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kernel/attach_plan.h"

namespace tacho::kernel {

/// Makes tracefs readable at one of its usual places, mounting it where that is allowed. Without it the classic
/// tracepoints are unavailable, and plans without them are used.
/// @return its path, or why it is unavailable
Result<std::string> ensure_tracefs();

/// What to tell of a bpf(2) that fails with this errno for a process that has the capabilities: why, and the remedy.
std::string why_bpf_is_refused(int error, bool in_user_namespace);

/// The prerequisites of any observation that this process and kernel lack, one line each with the remedy; empty if
/// none.
std::vector<std::string> missing_prerequisites(const std::string& btf_path);

/// The rights that kprobes need: return probes are events of tracefs, and all are opened by perf_event_open.
struct KprobeRights {
  int paranoid = 0;              ///< the sysctl kernel.perf_event_paranoid
  bool may_administer = true;    ///< CAP_SYS_ADMIN
  bool may_write_events = true;  ///< the file kprobe_events, if the kernel has it
};
KprobeRights kprobe_rights();

/// The rights that are missing for kprobes, in words; empty if none.
std::string missing_for_kprobes(const KprobeRights& rights);

/// Whether a hook is missing that one of the ways tried would have been kprobes for, be it of another variant that
/// lost.
bool kprobes_would_help(std::span<const HookState> hooks);

/// Version and patch level of the running kernel, such as 6 and 18; 0 and 0 if it does not say.
std::pair<unsigned, unsigned> kernel_release();

/// CPU numbers are below this.
unsigned possible_cpus();

}  // namespace tacho::kernel
