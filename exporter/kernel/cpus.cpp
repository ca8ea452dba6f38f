#include "kernel/cpus.h"

#include <algorithm>
#include <charconv>
#include <fstream>

#include "kernel/features.h"

namespace tacho::kernel {
namespace {

using Ranges = std::vector<std::pair<unsigned, unsigned>>;

bool take_number(std::string_view& text, unsigned& number) {
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  text.remove_prefix(error == std::errc{} ? static_cast<std::size_t>(end - text.begin()) : 0);
  return error == std::errc{};
}

std::optional<std::string> first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  return std::getline(in, line) ? std::optional(line) : std::nullopt;
}

std::optional<Ranges> ranges_in(const std::string& file) {
  const auto line = first_line(file);
  return line ? parse_cpu_ranges(*line) : std::nullopt;
}

/// Its smallest CPU.
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
    const std::string line = first_line(of + "/level").value_or("");
    unsigned level = 0;
    if (std::string_view text = line; !take_number(text, level)) {
      return cache;
    }
    if (level > highest) {
      highest = level;
      cache = first_in(of + "/shared_cpu_list");
    }
  }
}

}  // namespace

std::optional<Ranges> parse_cpu_ranges(std::string_view text) {
  Ranges all;
  while (true) {
    auto& [first, last] = all.emplace_back();
    if (!take_number(text, first)) {
      return {};
    }
    last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      if (!take_number(text, last)) {
        return {};
      }
    }
    if (last < first) {
      return {};
    }
    if (!text.starts_with(',')) {
      return text.empty() || text == "\n" ? std::optional(std::move(all)) : std::nullopt;
    }
    text.remove_prefix(1);
  }
}

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
