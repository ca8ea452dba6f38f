#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tacho::kernel {

/// Makes tracefs readable at one of its usual places, mounting it where that is allowed; without it the classic
/// tracepoints are not to be had and plans without them are taken.
/// @return where it is, or why it is not there
Result<std::string> ensure_tracefs();

/// What this process and kernel lack for observing anything at all, one line each with the remedy; empty if nothing.
std::vector<std::string> missing_prerequisites(const std::string& btf_path);

/// What decides over kprobes: return probes are events of tracefs, and all are opened by perf_event_open.
struct KprobeRights {
  int paranoid = 0;              ///< the sysctl kernel.perf_event_paranoid
  bool may_administer = true;    ///< CAP_SYS_ADMIN
  bool may_write_events = true;  ///< the file kprobe_events, if the kernel has it
};
KprobeRights kprobe_rights();

/// What they lack for kprobes, in words; empty if nothing.
std::string missing_for_kprobes(const KprobeRights& rights);

/// CPU numbers are below this.
unsigned possible_cpus();

}  // namespace tacho::kernel
