#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "kernel/bpf_object.h"

namespace tacho::kernel {

/// The kernel's statistics of one of our programs.
struct ProgramStatistics {
  std::string program;
  std::uint64_t runs = 0;    ///< while run statistics were on
  std::uint64_t run_ns = 0;  ///< while run statistics were on
  std::uint64_t misses = 0;  ///< runs skipped because the program interrupted itself
  std::uint32_t verified =
      0;  ///< instructions the verifier processed; 0: before 5.16, unless it was asked while loading
  std::uint32_t translated = 0;  ///< bytes of BPF after the verifier; 0: unavailable without CAP_BPF
  std::uint32_t compiled = 0;    ///< bytes of machine code; 0: unavailable without CAP_BPF, or interpreted
};

/// The statistics of all loaded programs of the object.
std::vector<ProgramStatistics> program_statistics(const BpfObject& object);

/// Switches the kernel's run statistics (run time and count of every BPF program of the machine) on while it lives.
Result<UniqueFd> enable_run_statistics();

struct MapFill {
  std::string map;
  std::uint64_t entries = 0;
  std::uint64_t max_entries = 0;
};

/// Entries of a hash or array-of-maps by walking its keys: meant for small maps and scrapes.
Result<MapFill> map_fill(const BpfObject& object, const std::string& map);

/// Events that the object's programs have lost, by reason (bpf/lib/loss.h); none if it counts none.
Result<std::vector<std::uint64_t>> lost_events(const BpfObject& object);

}  // namespace tacho::kernel
