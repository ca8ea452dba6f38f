#include "kernel/skipped_events.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace tacho::kernel {
namespace {

constexpr std::string_view kAgain = "_again";

}  // namespace

std::uint64_t skipped_events(std::span<const ProgramStatistics> before, std::span<const ProgramStatistics> now) {
  std::map<std::string_view, std::uint64_t> earlier;
  for (const ProgramStatistics& program : before) {
    earlier[program.program] = program.misses;
  }
  std::map<std::string, std::uint64_t> grown;
  for (const ProgramStatistics& program : now) {
    const auto found = earlier.find(program.program);
    grown[program.program] = program.misses - (found == earlier.end() ? 0 : std::min(found->second, program.misses));
  }
  std::uint64_t sum = 0;
  for (const auto& [program, misses] : grown) {
    if (program.ends_with(kAgain)) {
      continue;
    }
    const auto second = grown.find(program + std::string(kAgain));
    sum += second == grown.end() ? misses : std::min(misses, second->second);
  }
  return sum;
}

}  // namespace tacho::kernel
