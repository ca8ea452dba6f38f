#include "kernel/cpus.h"

#include <algorithm>
#include <fstream>

#include "kernel/features.h"

namespace tacho::kernel {
namespace {

using Ranges = std::vector<std::pair<unsigned, unsigned>>;

std::optional<std::string> first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  return std::getline(in, line) ? std::optional(line) : std::nullopt;
}

std::optional<Ranges> ranges_in(const std::string& file) {
  const auto line = first_line(file);
  return line ? parse_cpu_ranges(*line) : std::nullopt;
}

/// Its smallest number.
std::optional<unsigned> first_in(const std::string& file) {
  const auto ranges = ranges_in(file);
  return ranges ? std::optional(ranges->front().first) : std::nullopt;
}

/// Of the cache of the highest level.
std::optional<unsigned> last_cache(const std::string& directory) {
  std::optional<unsigned> cache;
  unsigned highest = 0;
  for (unsigned index = 0;; ++index) {
    const std::string of = directory + "/cache/index" + std::to_string(index);
    const auto level = first_in(of + "/level");
    if (!level) {
      return cache;
    }
    if (*level > highest) {
      highest = *level;
      cache = first_in(of + "/shared_cpu_list");
    }
  }
}

}  // namespace

Cpus read_cpus(const std::string& directory) {
  constexpr unsigned kMost = 1 << 16;  // more than any kernel is built for
  Cpus cpus;
  const auto possible = ranges_in(directory + "/possible");
  cpus.end = possible ? std::min(possible->back().second, kMost - 1) + 1 : possible_cpus();
  const auto online = ranges_in(directory + "/online").value_or(Ranges{{0, cpus.end - 1}});
  for (const auto& [first, last] : online) {
    for (unsigned number = first; number <= std::min(last, cpus.end - 1); ++number) {
      const std::string of = directory + "/cpu" + std::to_string(number);
      cpus.online.push_back({.number = number,
                             .cache = last_cache(of).value_or(0),
                             .core = first_in(of + "/topology/thread_siblings_list").value_or(number)});
    }
  }
  return cpus;
}

}  // namespace tacho::kernel
