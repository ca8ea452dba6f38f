#include <bpf/sched.skel.h>
#include <bpf/sched_basic.skel.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kernel/features.h"
#include "kernel/iterator.h"
#include "kernel/kernel_types.h"
#include "probes/anatomy.h"
#include "probes/bracket.h"
#include "probes/histogram_decode.h"
#include "probes/load.h"
#include "probes/registry.h"
#include "probes/sched_decode.h"
#include "probes/target_blocks.h"

namespace tacho::probes {
namespace {

using kernel::Alternative;
using kernel::Hook;

constexpr std::array<std::string_view, 3> kThreads{"sched_woken_first", "sched_woken", "sched_switched"};
constexpr std::array<std::string_view, 3> kRaw{"raw_sched_woken_first", "raw_sched_woken", "raw_sched_switched"};
constexpr std::array<std::string_view, 1> kOlder{"sched_adopt"};

constexpr std::array kThreadWays{Alternative{"tp_btf", kThreads}};
constexpr std::array kBasicThreadWays{Alternative{"tp_btf", kThreads}, Alternative{"raw_tracepoint", kRaw}};
constexpr std::array kOlderWays{Alternative{"iterator", kOlder}};

constexpr std::array kHooks{Hook{"threads", kThreadWays}, Hook{"older_threads", kOlderWays}};
constexpr std::array kBasicHooks{Hook{"threads", kBasicThreadWays}, Hook{"older_threads", kOlderWays}};

constexpr std::array<std::string_view, 1> kBoundedMaps{"sched_blocks"};

class SchedProbe final : public Probe {
 public:
  SchedProbe(std::unique_ptr<kernel::BpfObject> loaded, const Environment& environment)
      : Probe({.name = "sched", .families = sched_families(), .bounded_maps = kBoundedMaps}, std::move(loaded)),
        blocks_("sched", object().map("sched_blocks"), sizeof(sched_shard), environment.shards.shards()),
        hierarchies_(environment.hierarchies),
        targets_(environment.indices) {}

  Result<void> add_target(std::uint32_t index) override {
    targets_.at(index) = {};
    return blocks_.add(index);
  }

  void remove_target(std::uint32_t index) override { blocks_.remove(index); }

  Result<void> flush() override { return blocks_.flush(); }

  Result<void> look_after(Occasion occasion, std::int64_t /*now_ns*/) override {
    if (occasion != Occasion::targets_added) {
      return {};
    }
    const bpf_program* program = object().program("sched_adopt");
    return program != nullptr ? kernel::run_iterator(program)
                              : fail("threads that sleep since before tacho are not known until they wake");
  }

  void sample(const Look& look, TargetSample& sample) override {
    const State& target = update(look);
    const CpuAllowance& cpu = target.limits.allowance();
    SchedSample& part = sample.sched.emplace();
    if (object().attached("threads")) {
      part.counters.running_ns = target.totals.state_ns[TACHO_THREAD_RUNNING];
    }
    part.counters.cores = cpu.cores;
    part.counters.frozen = cpu.frozen;
    part.runnable_ns = target.totals.state_ns[TACHO_THREAD_RUNNABLE];
    part.throttled_ns = cpu.throttled_ns;
    for (const sched_shard* shard : shards_of(look.index)) {
      part.own_ns += probes::load(shard->own_ns);
    }
  }

  void read(const Look& look, const metrics::Gauges& /*gauges*/, metrics::Row& row) override {
    const State& target = update(look);
    metrics::Histogram delay;
    for (const sched_shard* shard : shards_of(look.index)) {
      add_histogram(delay, shard->runqueue_delay);
    }
    decode(delay, target.totals, target.limits.allowance(), row);
  }

 private:
  /// What user space keeps about a target.
  struct State {
    SchedTotals totals;
    CpuLimits limits;
    std::uint64_t running_ns = 0;  ///< at the last look
  };

  [[nodiscard]] std::vector<const sched_shard*> shards_of(std::uint32_t index) const {
    std::vector<const sched_shard*> shards;
    for (std::uint32_t i = 0; i < blocks_.shards(); ++i) {
      if (const auto* shard = blocks_.shard<sched_shard>(index, i)) {
        shards.push_back(shard);
      }
    }
    return shards;
  }

  const State& update(const Look& look) {
    State& target = targets_.at(look.index);
    const auto shards = shards_of(look.index);
    target.totals.raise(read_times(shards, kernel_now_ns));
    ThreadLimits threads;
    for (const sched_shard* shard : shards) {
      add_affinity(threads, *shard, look.now_ns);
    }
    keep_below(threads.cpus, possible_cpus_);
    const std::uint64_t running_ns = target.totals.state_ns[TACHO_THREAD_RUNNING];
    threads.ran = std::exchange(target.running_ns, running_ns) != running_ns;
    target.limits.locate(look.cgroup);
    target.limits.update(hierarchies_, threads, look.now_ns);
    return target;
  }

  TargetBlocks blocks_;
  CpuHierarchies hierarchies_;
  std::size_t possible_cpus_ = kernel::possible_cpus();
  std::vector<State> targets_;  // by index
};

}  // namespace

std::vector<kernel::Variant> sched_variants() {
  return {{"task_storage", kernel::source_of("sched", sched_bpf__elf_bytes), kHooks},
          {"hash", kernel::source_of("sched", sched_basic_bpf__elf_bytes), kBasicHooks}};
}

Result<std::unique_ptr<Probe>> load_sched_probe(const config::Config& config, const Environment& environment) {
  auto variants = sched_variants();
  if (!kernel::has_safe_task_storage(environment.btf_path)) {
    variants.erase(variants.begin());
  }
  const auto online = static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  auto object =
      load_object(variants, config.probes.sched, environment, [&](kernel::ObjectSetup& setup) -> Result<void> {
        if (auto done = setup.set_constant("call_slots", call_slots()); !done) {
          return done;
        }
        if (auto done = setup.set_constant("cpus_online", online); !done) {
          return done;
        }
        const bool anatomy = config.probes.anatomy.enabled && config.probes.socket.enabled;
        if (auto done = setup.set_constant("anatomy", static_cast<std::uint32_t>(anatomy)); !done) {
          return done;
        }
        if (auto done = setup.set_constant("call_waits", call_waits()); !done) {
          return done;
        }
        if (auto done = setup.set_max_entries("latest_reads", static_cast<std::uint32_t>(environment.indices)); !done) {
          return done;
        }
        return set_up_blocks(setup, "sched_blocks", sizeof(sched_shard), environment);
      });
  if (!object) {
    return std::unexpected(object.error());
  }
  return std::make_unique<SchedProbe>(std::move(*object), environment);
}

}  // namespace tacho::probes
