#include "probes/cpu_limits.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "base/regular_file.h"
#include "kernel/cpus.h"

namespace tacho::probes {
namespace {

constexpr std::int64_t kIntervalNs = 10'000'000'000;
constexpr std::int64_t kFrozenIntervalNs = 5'000'000'000;

/// The whole number at the beginning of `text`, which is moved behind it.
template <class Number>
std::optional<Number> take_number(std::string_view& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.begin(), text.end(), number);
  if (error != std::errc{}) {
    return {};
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.begin()));
  return number;
}

std::optional<double> cores(std::optional<std::int64_t> quota, std::optional<std::int64_t> period) {
  if (!quota || !period || *quota <= 0 || *period <= 0) {
    return {};
  }
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

/// Nothing if there is no such file.
std::optional<std::string> contents(const std::string& file) {
  constexpr std::size_t kLargest = 64 << 10;  // a list of CPUs is the longest
  auto text = read_regular_file(file, kLargest);
  return text ? std::optional(*std::move(text)) : std::nullopt;
}

void lower(std::optional<double>& limit, std::optional<double> other) {
  if (other) {
    limit = std::min(limit.value_or(*other), *other);
  }
}

/// The path and all above it, without the root's slash: "/a/b", "/a", "".
std::vector<std::string> upwards(std::string_view path) {
  std::vector<std::string> all;
  while (!path.empty() && path != "/") {
    all.emplace_back(path);
    path = path.substr(0, path.rfind('/'));
  }
  all.emplace_back();
  return all;
}

std::optional<double> quota_of(const CpuHierarchies& hierarchies, const std::string& path) {
  if (hierarchies.cpu_v1.empty()) {
    return parse_cpu_max(contents(hierarchies.v2 + path + "/cpu.max").value_or(""));
  }
  const std::string directory = hierarchies.cpu_v1 + path;
  return parse_cfs_quota(contents(directory + "/cpu.cfs_quota_us").value_or(""),
                         contents(directory + "/cpu.cfs_period_us").value_or(""));
}

std::optional<std::size_t> cpuset_of(const CpuHierarchies& hierarchies, const std::string& path) {
  return hierarchies.cpuset_v1.empty()
             ? parse_cpu_list(contents(hierarchies.v2 + path + "/cpuset.cpus.effective").value_or(""))
             : parse_cpu_list(contents(hierarchies.cpuset_v1 + path + "/cpuset.effective_cpus").value_or(""));
}

}  // namespace

std::size_t count(const CpuSet& cpus) {
  return std::accumulate(cpus.begin(), cpus.end(), std::size_t{0}, [](std::size_t sum, std::uint64_t word) {
    return sum + static_cast<std::size_t>(std::popcount(word));
  });
}

std::size_t usable_cpus(std::size_t allowed, std::size_t online) {
  constexpr std::size_t kAll = std::size_t{TACHO_AFFINITY_WORDS} * 64;
  return allowed == 0 || allowed == kAll ? online : std::min(allowed, online);
}

void keep_below(CpuSet& cpus, std::size_t end) {
  constexpr std::size_t kBits = 64;
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const std::size_t bits = std::min(end - std::min(end, i * kBits), kBits);
    cpus[i] &= bits == kBits ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  }
}

std::optional<double> parse_cpu_max(std::string_view text) {
  const auto quota = take_number<std::int64_t>(text);
  if (!quota || !text.starts_with(' ')) {
    return {};
  }
  text.remove_prefix(1);
  return cores(quota, take_number<std::int64_t>(text));
}

std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period) {
  return cores(take_number<std::int64_t>(quota), take_number<std::int64_t>(period));
}

std::optional<std::size_t> parse_cpu_list(std::string_view text) {
  return kernel::parse_cpu_ranges(text).transform([](const auto& ranges) {
    return std::transform_reduce(ranges.begin(), ranges.end(), std::size_t{0}, std::plus(),
                                 [](const auto& range) { return std::size_t{range.second} - range.first + 1; });
  });
}

std::optional<std::uint64_t> parse_throttled(std::string_view cpu_stat) {
  struct Form {
    std::string_view key;
    std::uint64_t unit_ns;
  };
  for (const Form& form : {Form{"throttled_usec ", 1000}, Form{"throttled_time ", 1}}) {
    // At the beginning of a line.
    for (auto at = cpu_stat.find(form.key); at != std::string_view::npos; at = cpu_stat.find(form.key, at + 1)) {
      std::string_view rest = cpu_stat.substr(at + form.key.size());
      const auto number = take_number<std::uint64_t>(rest);
      if ((at == 0 || cpu_stat[at - 1] == '\n') && number) {
        return *number * form.unit_ns;
      }
    }
  }
  return {};
}

std::optional<double> cgroup_cpu_limit(const CpuHierarchies& hierarchies, std::string_view path) {
  std::optional<double> limit;
  std::optional<std::size_t> cpuset;
  for (const std::string& above : upwards(path)) {
    lower(limit, quota_of(hierarchies, above));
    if (!cpuset) {
      // It is within those above, as the kernel sees to.
      cpuset = cpuset_of(hierarchies, above);
    }
  }
  lower(limit, cpuset);
  return limit;
}

std::optional<std::uint64_t> cgroup_throttled(const CpuHierarchies& hierarchies, std::string_view path) {
  const std::string& mount = hierarchies.cpu_v1.empty() ? hierarchies.v2 : hierarchies.cpu_v1;
  return parse_throttled(contents(mount + std::string(path) + "/cpu.stat").value_or(""));
}

std::optional<bool> cgroup_frozen(const CpuHierarchies& hierarchies, std::string_view path) {
  if (!hierarchies.freezer_v1.empty()) {
    if (const auto state = contents(hierarchies.freezer_v1 + std::string(path) + "/freezer.state");
        state && state->starts_with("FROZEN")) {
      return true;
    }
  }
  // Linux 5.2; also where runtimes use the v1 controller, this one may be frozen.
  const auto events = contents(hierarchies.v2 + std::string(path) + "/cgroup.events");
  const std::size_t at = events ? events->find("frozen ") : std::string::npos;
  return at == std::string::npos ? std::nullopt : std::optional(events->substr(at).starts_with("frozen 1"));
}

void CpuLimits::locate(std::string_view path) {
  if (path != path_) {
    path_ = path;
    throttled_.reset();
    next_ns_ = 0;
    next_frozen_ns_ = 0;
    allowance_.frozen.reset();
  }
}

void CpuLimits::read_frozen(const CpuHierarchies& hierarchies, bool ran, std::int64_t now_ns) {
  if (path_.empty()) {
    return;
  }
  // What is frozen is looked at each time, until it is not; what runs is not.
  if (allowance_.frozen.value_or(false) || (now_ns >= next_frozen_ns_ && (!ran || !allowance_.frozen))) {
    allowance_.frozen = cgroup_frozen(hierarchies, path_);
    next_frozen_ns_ = now_ns + kFrozenIntervalNs;
  }
}

void CpuLimits::read_throttled(const CpuHierarchies& hierarchies) {
  const auto now = cgroup_throttled(hierarchies, path_);
  if (!now) {
    return;
  }
  // What was before the first look is not ours.
  allowance_.throttled_ns += *now - std::min(*now, throttled_.value_or(*now));
  throttled_ = now;
}

void CpuLimits::update(const CpuHierarchies& hierarchies, const ThreadLimits& threads, std::int64_t now_ns) {
  const bool due = now_ns >= next_ns_;
  if (due) {
    next_ns_ = now_ns + kIntervalNs;
    online_ = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
    limit_ = path_.empty() ? std::nullopt : cgroup_cpu_limit(hierarchies, path_);
    has_quota_ = !path_.empty() && quota_of(hierarchies, path_);
  }
  read_frozen(hierarchies, threads.ran, now_ns);
  if (has_quota_ || (due && !path_.empty())) {
    read_throttled(hierarchies);
  }
  if (const std::size_t allowed = count(threads.cpus); allowed > 0) {
    threads_ = allowed;
  }
  // Threads that do not run say nothing: what they said last holds.
  if (threads.quota > 0) {
    threads_quota_.reset();
    if (threads.quota != TACHO_NO_QUOTA) {
      threads_quota_ = static_cast<double>(threads.quota) / (1 << TACHO_QUOTA_SHIFT);
    }
  }
  allowance_.cores = static_cast<double>(usable_cpus(threads_, online_));
  for (const auto& limit : {limit_, threads_quota_}) {
    allowance_.cores = std::min(allowance_.cores, limit.value_or(allowance_.cores));
  }
}

}  // namespace tacho::probes
