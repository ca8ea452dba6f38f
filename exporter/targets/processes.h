#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "bpf/lib/targets.h"
#include "kernel/bpf_object.h"
#include "targets/world.h"

namespace tacho::targets {

/// One process from /proc/PID; nothing if it is gone. An error if that is unknown, for example for lack of descriptors.
Result<std::optional<Process>> read_process(const std::string& procfs, std::uint32_t tgid);

/// All processes, from /proc. An error if some could not be read, since they would be taken for gone.
Result<std::map<std::uint32_t, Process>> scan_processes(const std::string& procfs);

/// All processes that run a file, from records of the kernel's iterators, which need no right to read other users'
/// processes.
/// @param procfs has the paths of processes whose record has only the name of the file
std::map<std::uint32_t, Process> processes_of(std::span<const process_record> records, const std::string& procfs);

/// The object's iterator over processes, if the kernel has it.
const bpf_program* process_lister(const kernel::BpfObject& object);

/// All processes, by the object's iterator, or from /proc where there is none; an error as scan_processes().
/// @param own_tgid becomes tacho's own, as the kernel numbers it
Result<std::map<std::uint32_t, Process>> list_processes(const kernel::BpfObject& object, const std::string& procfs,
                                                        std::uint32_t& own_tgid);

}  // namespace tacho::targets
