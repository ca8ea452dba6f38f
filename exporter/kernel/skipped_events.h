#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "kernel/statistics.h"

namespace tacho::kernel {

/// Events that no program of an object was run for: the kernel skips a program on a CPU on which it is running already.
/// Where a second program makes up for the first one (NAME_again, see bpf/socket_again.bpf.h), an event is lost only if
/// both were skipped. Which events these were is unknown, so the smaller growth of the two between two readings is
/// taken, an upper bound.
class SkippedEvents {
 public:
  /// @return all so far, as of this reading
  std::uint64_t update(std::span<const ProgramStatistics> programs);

 private:
  std::map<std::string, std::uint64_t> before_;  // misses by program
  std::uint64_t total_ = 0;
};

}  // namespace tacho::kernel
