#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/health.h"
#include "process/capabilities.h"
#include "scrape/self_families.h"
#include "targets/target_table.h"

namespace tacho::scrape {

/// A BPF object at its last reading.
struct ObservedObject {
  kernel::ObjectHealth health;
  std::uint64_t skipped = 0;  ///< events for which the kernel skipped its programs
};

/// The result of reading one collector.
struct CollectorResult {
  std::string_view collector;
  double seconds = 0;
  bool success = true;
};

struct ReloadState {
  bool successful = true;
  double success_time = 0;  ///< Unix time
};

/// Hooks, losses, run statistics and map fills of the objects.
/// @param failed probes that are enabled and have no object
std::vector<SelfFamily> object_metrics(std::span<const ObservedObject> objects, std::span<const std::string> failed,
                                       bool run_statistics);

/// How many targets there are, and were not.
struct TableNumbers {
  std::size_t live = 0;
  std::uint64_t overflowed = 0;
  targets::TargetTable::Shortfalls shortfalls;
};

/// @param reported targets
std::vector<SelfFamily> target_metrics(std::span<const targets::DesiredTarget* const> reported,
                                       const TableNumbers& numbers);

std::vector<SelfFamily> collector_metrics(std::span<const CollectorResult> results);

/// The counters of the web server.
struct WebCounters {
  std::uint64_t open = 0;
  std::uint64_t accepted = 0;
  std::vector<std::pair<std::string, std::uint64_t>> lost;  ///< by reason
  std::uint64_t starts = 0;
  double cpu_seconds = 0;
  std::uint64_t dropped_log_lines = 0;
};

std::vector<SelfFamily> web_metrics(const WebCounters& counters);

/// @param dropped_elsewhere lines of the log that other processes of tacho dropped
std::vector<SelfFamily> program_metrics(const ReloadState& reload, std::uint64_t dropped_elsewhere = 0);

/// The capabilities of tacho's processes.
std::vector<SelfFamily> rights_metrics(std::span<const process::Rights> processes);

/// Events lost by an object so far, by reason; empty if they cannot be read.
std::vector<std::pair<std::string_view, std::uint64_t>> losses(const kernel::ObjectHealth& object);

/// Events that an object could not count so far, whatever the reason; a peer that is counted under `other` is not one.
std::uint64_t lost_events(const kernel::ObjectHealth& object);

}  // namespace tacho::scrape
