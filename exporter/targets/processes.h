#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "targets/world.h"

namespace tacho::targets {

/// One process from /proc/PID; nothing if it is gone.
std::optional<Process> read_process(const std::string& procfs, std::uint32_t tgid);

/// All processes.
std::map<std::uint32_t, Process> scan_processes(const std::string& procfs);

}  // namespace tacho::targets
