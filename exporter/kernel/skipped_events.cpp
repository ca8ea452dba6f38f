#include "kernel/skipped_events.h"

#include <algorithm>
#include <string_view>

namespace tacho::kernel {
namespace {

constexpr std::string_view kAgain = "_again";

}  // namespace

std::uint64_t SkippedEvents::update(std::span<const ProgramStatistics> programs) {
  std::map<std::string, std::uint64_t> grown;
  for (const ProgramStatistics& program : programs) {
    std::uint64_t& before = before_[program.program];
    grown[program.program] = program.misses - std::min(before, program.misses);
    before = program.misses;
  }
  for (const auto& [program, misses] : grown) {
    if (program.ends_with(kAgain)) {
      continue;
    }
    const auto second = grown.find(program + std::string(kAgain));
    total_ += second == grown.end() ? misses : std::min(misses, second->second);
  }
  return total_;
}

}  // namespace tacho::kernel
