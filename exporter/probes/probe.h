#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/config.h"
#include "kernel/bpf_object.h"
#include "kernel/shards.h"
#include "metrics/family.h"
#include "metrics/value.h"
#include "metrics/window.h"
#include "probes/anatomy.h"
#include "probes/cpu_limits.h"
#include "probes/slow_requests.h"

namespace tacho::probes {

/// What every probe is loaded with.
struct Environment {
  const kernel::BpfObject* targets = nullptr;  ///< owner of the look-up maps
  const kernel::BpfObject* threads = nullptr;  ///< owner of what is known of threads; none: nothing is
  kernel::ShardLayout shards;
  std::size_t indices = 0;  ///< of targets
  std::uint32_t max_peers = 0;
  bool cgroup_v1 = false;  ///< cgroups are those of the v1 memory controller
  CpuHierarchies hierarchies;
  std::string btf_path;
  bool attach = true;
};

/// Counters behind the conditions of a target (`tacho_target_condition`); cumulative. A part is there only if its hooks
/// are: what could not be seen is not 0.
struct ConditionCounters {
  struct Turns {
    std::uint64_t requests = 0;
    std::uint64_t overlapped = 0;        ///< turns in which more data came before the reply
    std::uint64_t sampled = 0;           ///< turns looked at for several requests in one read
    std::uint64_t repeated = 0;          ///< of these, with more than one
    std::uint64_t one_way = 0;           ///< messages without a reply
    std::uint64_t calls = 0;             ///< to dependencies
    std::uint64_t calls_overlapped = 0;  ///< of these, begun while another one was open
    std::uint64_t calls_sampled = 0;     ///< on streams, looked at for several at a time
    std::uint64_t calls_repeated = 0;    ///< of these, with more than one
  };
  struct Polls {
    std::uint64_t calls = 0;
    std::uint64_t nonblocking = 0;
  };
  std::optional<Turns> turns;
  std::optional<Polls> polls;
  std::optional<bool> frozen;  ///< now
};

/// Calls to one peer so far.
struct CallSums {
  std::uint32_t slot = 0;  ///< the peer's, among the target's
  std::uint64_t calls = 0;
  std::uint64_t ns = 0;          ///< last send to first byte back
  std::uint64_t in_line_ns = 0;  ///< of calls by threads that had a request to answer
};

/// What the sampler reads of a target once a second, beside the window's counters; each probe adds its part.
struct Activity {
  ConditionCounters conditions;
  metrics::FineHistogram duration;          ///< of requests
  std::optional<std::uint64_t> queue_ns;    ///< time that requests waited for their first read
  std::uint64_t threads = 0;                ///< that poll and are alive
  std::optional<std::uint64_t> running_ns;  ///< thread time on CPUs
  std::uint64_t runnable_ns = 0;            ///< thread time spent waiting for a CPU
  CpuAllowance cpu;
  std::optional<Anatomy> anatomy;  ///< where the time of requests went, if that is known of any
  std::vector<CallSums> calls;     ///< of peers that were called
};

/// Calls to one peer.
struct Dependency {
  std::uint32_t slot = 0;  ///< the peer's, among the target's
  std::string peer;
  metrics::Histogram duration;  ///< last send to first byte back
};

/// What people want to know first about a target; each probe fills in its part.
struct Summary {
  std::uint64_t requests = 0;
  metrics::FineHistogram duration;  ///< arrival to first byte of the reply
  metrics::Histogram queue;         ///< arrival to first read
  std::uint64_t in_flight = 0;
  std::uint64_t server_connections = 0;
  std::uint64_t waiters = 0;  ///< threads in polling calls
  std::uint64_t threads = 0;
  std::vector<Dependency> dependencies;  ///< in no particular order
};

/// One subject observed in the kernel: its programs, the accumulators of every target, its metric families.
/// Not synchronised: the scraper calls one probe from one thread at a time.
class Probe {
 public:
  virtual ~Probe() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual std::span<const metrics::Family> families() const = 0;
  [[nodiscard]] virtual const kernel::BpfObject& object() const = 0;
  /// Maps whose fill is exported.
  [[nodiscard]] virtual std::span<const std::string_view> bounded_maps() const { return {}; }

  /// Makes the accumulators of a target index, at 0; they count after the next flush().
  virtual Result<void> add_target(std::uint32_t index) = 0;
  virtual void remove_target(std::uint32_t index) = 0;
  /// Says where the target's cgroup is, below the mount; empty: it has none of its own. It may change.
  virtual void locate_target(std::uint32_t /*index*/, std::string_view /*cgroup*/) {}
  /// Makes the additions and removals since the last call known to the kernel.
  virtual Result<void> flush() = 0;
  /// Finds what is older than the programs or than a target.
  virtual Result<void> adopt() = 0;
  /// Finds what hooks have missed and no later event tells of; every half a minute.
  virtual Result<void> find_missed() { return {}; }

  /// Looks after what no event announces; once a second. `now_ns` is CLOCK_MONOTONIC.
  virtual Result<void> maintain(std::int64_t /*now_ns*/) { return {}; }

  /// Adds this probe's part to a sample of the windowed gauges. `now_ns` is CLOCK_MONOTONIC, as the programs use it.
  virtual void sample(std::uint32_t index, std::int64_t now_ns, metrics::WindowSample& sample) = 0;
  virtual void count(std::uint32_t index, std::int64_t now_ns, Activity& activity) = 0;
  virtual void summarize(std::uint32_t index, Summary& summary) = 0;
  /// The slowest requests of the last minutes, the slowest first, as far as this probe knows any.
  virtual std::vector<SlowRequest> slowest(std::uint32_t /*index*/, std::int64_t /*now_ns*/) { return {}; }
  /// Exemplars for the row that read() fills next: what they are of is counted by then.
  virtual void exemplars(std::uint32_t /*index*/, std::int64_t /*now_ns*/, metrics::Row& /*row*/) {}
  /// All samples of a target, in the order of families().
  virtual void read(std::uint32_t index, std::int64_t now_ns, const metrics::Window& window, metrics::Row& row) = 0;
};

}  // namespace tacho::probes
