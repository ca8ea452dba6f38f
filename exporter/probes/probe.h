#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bpf/lib/targets.h"
#include "config/config.h"
#include "kernel/bpf_object.h"
#include "kernel/shards.h"
#include "metrics/family.h"
#include "metrics/unseen.h"
#include "metrics/value.h"
#include "metrics/window.h"
#include "probes/cpu_limits.h"
#include "probes/sample.h"
#include "probes/slow_requests.h"

namespace tacho::probes {

/// Passed to every probe when it is loaded.
struct Environment {
  const kernel::BpfObject* targets = nullptr;  ///< owner of the look-up maps
  const kernel::BpfObject* threads = nullptr;  ///< owner of the threads' records; none: unavailable
  kernel::ShardLayout shards;
  std::size_t indices = 0;  ///< of targets
  std::uint32_t max_peers = 0;
  bool cgroup_v1 = false;  ///< cgroups are those of the v1 memory controller
  CpuHierarchies hierarchies;
  std::string btf_path;
  bool attach = true;
};

/// How to read a target.
struct Look {
  std::int64_t now_ns = 0;  ///< CLOCK_MONOTONIC, as the programs use it
  std::string_view cgroup;  ///< the target's now, below the mount; empty: it has none of its own
  bool in_detail = false;   ///< with names of peers in a sample, exemplars in a row: not every reader shows them
};

/// The properties of a loaded probe.
struct ProbeInfo {
  std::string_view name;
  std::span<const metrics::Family> families;
  std::span<const std::string_view> bounded_maps;  ///< maps whose fill is exported
  metrics::Unseen unseen{};                        ///< what hooks that are not attached do not show
};

/// Occasions for work of a probe that no event triggers.
enum class Occasion : std::uint8_t {
  targets_added,  ///< to find sockets and threads that are older than the programs or a target
  half_minute,    ///< to find what hooks have missed
  second,
};

/// The accumulators of one target, as one probe reads them. They are read by any thread, also after the probe has given
/// up the target: then they show what was last. No reader waits for the probe, and the probe waits for no reader.
class Accumulators {
 public:
  Accumulators(const Accumulators&) = delete;
  Accumulators& operator=(const Accumulators&) = delete;
  virtual ~Accumulators() = default;

  /// Adds the probe's part to a sample.
  virtual void sample(const Look& look, TargetSample& sample) = 0;
  /// The same once a second, only by the thread that owns the probe: it also brings up to date what has no event. It is
  /// called for every target, so it reads only what a sample needs.
  virtual void tick(const Look& look, TargetSample& sample) { this->sample(look, sample); }
  /// The programs are about to do without more or less for the target, and do so now. Only by that thread, too.
  virtual void before_shed() {}
  virtual void after_shed(tacho_shed /*level*/) {}
  /// All that is exported of the target, in the order of the probe's families.
  virtual void read(const Look& look, const metrics::Gauges& gauges, metrics::Row& row) = 0;
  /// The slowest requests of the last minutes, the slowest first; empty if the probe records none.
  virtual std::vector<SlowRequest> slowest(std::int64_t /*now_ns*/) { return {}; }

 protected:
  Accumulators() = default;
};

/// One subject observed in the kernel: its programs, the accumulators of every target, its metric families. One thread
/// owns it and calls it; only flush() may run on another one meanwhile.
class Probe {
 public:
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  virtual ~Probe() = default;

  [[nodiscard]] const ProbeInfo& info() const { return info_; }
  [[nodiscard]] const kernel::BpfObject& object() const { return *object_; }  ///< of a loaded probe

  /// Makes the accumulators of a target index, at 0; they count after the next flush().
  virtual Result<std::shared_ptr<Accumulators>> add_target(std::uint32_t index) = 0;
  virtual void remove_target(std::uint32_t index) = 0;
  /// Makes the additions and removals since the last call known to the kernel.
  virtual Result<void> flush() = 0;
  /// @param now_ns CLOCK_MONOTONIC
  virtual Result<void> look_after(Occasion /*occasion*/, std::int64_t /*now_ns*/) { return {}; }

 protected:
  /// @param object none in tests
  Probe(const ProbeInfo& info, std::unique_ptr<kernel::BpfObject> object) : info_(info), object_(std::move(object)) {
    if (object_) {
      info_.unseen = metrics::Unseen(info_.families, [this](std::string_view hook) { return object_->lacks(hook); });
    }
  }

 private:
  ProbeInfo info_;
  std::unique_ptr<kernel::BpfObject> object_;
};

}  // namespace tacho::probes
