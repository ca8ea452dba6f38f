#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bpf/sched.h"

// The CPUs that a cgroup may use, from the files of the controllers `cpu` and `cpuset` (Linux,
// Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst; scheduler/sched-bwc.rst).

namespace tacho::probes {

/// Mounts of the hierarchies; a controller is either in a v1 hierarchy of its own or in v2.
struct CpuHierarchies {
  std::string v2;          ///< or the one hierarchy of v1 whose paths name the cgroups
  std::string cpu_v1;      ///< empty: the controller is in v2
  std::string cpuset_v1;   ///< the same
  std::string freezer_v1;  ///< the same
};

/// The CPUs that a target may use, and the time for which it could not.
struct CpuAllowance {
  double cores = 0;  ///< CPUs, or a fraction of one; 0: unavailable so far
  std::uint64_t throttled_ns = 0;
  std::optional<bool> frozen;  ///< none: it has no cgroup of its own, or no file has it
};

/// A set of CPUs by number, 64 a word.
using CpuSet = std::array<std::uint64_t, TACHO_AFFINITY_WORDS>;
std::size_t count(const CpuSet& cpus);

/// The limits of a target's threads, from the kernel.
struct ThreadLimits {
  CpuSet cpus{};            ///< that they may run on; none: unavailable
  std::uint64_t quota = 0;  ///< as in sched_affinity
  bool ran = false;         ///< since the last look: then they are not frozen
};

/// The number of CPUs that threads can use if they may run on `allowed` ones; 0: unavailable. A set of all the CPUs
/// that it can hold is no restriction: on larger machines threads without one look like that.
std::size_t usable_cpus(std::size_t allowed, std::size_t online);
/// Keeps only the CPUs with numbers below `end`: in the kernel's own sets the bits above are undefined.
void keep_below(CpuSet& cpus, std::size_t end);

/// CPUs that `cpu.max` allows: "QUOTA PERIOD" in µs. Nothing for "max" and for any other text.
std::optional<double> parse_cpu_max(std::string_view text);
/// The same of `cpu.cfs_quota_us` (−1: no quota) and `cpu.cfs_period_us`.
std::optional<double> parse_cfs_quota(std::string_view quota, std::string_view period);
/// The number of CPUs in a list such as "0-3,8"; nothing if it is empty or not a list.
std::optional<std::size_t> parse_cpu_list(std::string_view text);
/// `throttled_usec` of v2's `cpu.stat` or `throttled_time` (ns) of v1's, in ns; nothing without the controller.
std::optional<std::uint64_t> parse_throttled(std::string_view cpu_stat);

/// CPUs that the cgroup's quotas and cpuset leave, those of its ancestors included. Where a hierarchy does not have the
/// path, its nearest existing ancestor counts: systemd keeps the processes there.
/// @param path of the cgroup below the mounts, "/" the root
/// @return nothing if there is no limit
std::optional<double> cgroup_cpu_limit(const CpuHierarchies& hierarchies, std::string_view path);

/// Time that the cgroup itself was throttled so far, in ns; nothing if it has no such file.
std::optional<std::uint64_t> cgroup_throttled(const CpuHierarchies& hierarchies, std::string_view path);

/// Whether the cgroup or one above it is frozen; nothing if no file has that.
std::optional<bool> cgroup_frozen(const CpuHierarchies& hierarchies, std::string_view path);

/// The limits of one target, read again now and then.
class CpuLimits {
 public:
  /// @param path of the target's cgroup; empty: it has none of its own
  void locate(std::string_view path);

  /// Reads what is due: limits every ten seconds, time throttled each time if the cgroup has a quota, whether it
  /// is frozen every five seconds in which it did not run.
  void update(const CpuHierarchies& hierarchies, const ThreadLimits& threads, std::int64_t now_ns);

  [[nodiscard]] const CpuAllowance& allowance() const { return allowance_; }

 private:
  void read_throttled(const CpuHierarchies& hierarchies);
  void read_frozen(const CpuHierarchies& hierarchies, bool ran, std::int64_t now_ns);

  std::string path_;
  CpuAllowance allowance_;
  std::optional<double> limit_;
  bool has_quota_ = false;
  std::size_t online_ = 0;
  std::size_t threads_ = 0;                 ///< CPUs that threads may run on; 0: unavailable
  std::optional<double> threads_quota_;     ///< and how much of them
  std::optional<std::uint64_t> throttled_;  ///< the cgroup's last value
  std::int64_t next_ns_ = 0;
  std::int64_t next_frozen_ns_ = 0;
};

}  // namespace tacho::probes
