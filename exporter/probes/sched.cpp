#include <bpf/sched.object.h>
#include <bpf/sched_basic.object.h>
#include <bpf/sched_hash.object.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
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

constexpr std::array<std::string_view, 2> kBoundedMaps{"sched_blocks", "sched_states"};

/// What all targets have in common.
struct SchedCommon {
  CpuHierarchies hierarchies;
  std::size_t possible_cpus = 0;
  bool sees_threads = false;
};

/// An allowance that one thread sets and others get; its values need not be of the same time.
class SharedAllowance {
 public:
  void set(const CpuAllowance& allowance) {
    cores_ = allowance.cores;
    throttled_ns_ = allowance.throttled_ns;
    frozen_ = allowance.frozen.transform([](bool frozen) { return static_cast<int>(frozen); }).value_or(kUnknown);
  }
  [[nodiscard]] CpuAllowance get() const {
    const int frozen = frozen_;
    return {.cores = cores_,
            .throttled_ns = throttled_ns_,
            .frozen = frozen == kUnknown ? std::nullopt : std::optional(frozen != 0)};
  }

 private:
  static constexpr int kUnknown = -1;
  std::atomic<double> cores_ = 0;
  std::atomic<std::uint64_t> throttled_ns_ = 0;
  std::atomic<int> frozen_ = kUnknown;
};

/// A target's threads.
class SchedAccumulators final : public Accumulators {
 public:
  SchedAccumulators(std::shared_ptr<const SchedCommon> common, kernel::MappedArray shards)
      : common_(std::move(common)), memory_(std::move(shards)) {
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      shards_.push_back(&memory_.at<sched_shard>(i));
    }
  }

  void sample(const Look& /*look*/, TargetSample& sample) override { add_part(totals(), sample); }

  void tick(const Look& look, TargetSample& sample) override {
    const SchedTotals now = totals();
    look_at_limits(look, now);
    add_part(now, sample);
  }

  void read(const Look& /*look*/, const metrics::Gauges& /*gauges*/, metrics::Row& row) override {
    metrics::Histogram delay;
    for (const sched_shard* shard : shards_) {
      add_histogram(delay, shard->runqueue_delay);
    }
    decode(delay, totals(), allowance_.get(), row);
  }

 private:
  SchedTotals totals() {
    SchedTotals now;
    now.raise(read_times(shards_, kernel_now_ns));
    return exported_.raise(now);
  }

  void add_part(const SchedTotals& totals, TargetSample& sample) const {
    const CpuAllowance cpu = allowance_.get();
    SchedSample& part = sample.sched.emplace();
    if (common_->sees_threads) {
      part.counters.running_ns = totals.state_ns[TACHO_THREAD_RUNNING];
    }
    part.counters.cores = cpu.cores;
    part.counters.frozen = cpu.frozen;
    part.runnable_ns = totals.state_ns[TACHO_THREAD_RUNNABLE];
    part.throttled_ns = cpu.throttled_ns;
    for (const sched_shard* shard : shards_) {
      part.own_ns += probes::load(shard->own_ns);
    }
  }

  /// Reads files: only once a second, and for nobody who waits.
  void look_at_limits(const Look& look, const SchedTotals& totals) {
    ThreadLimits threads;
    for (const sched_shard* shard : shards_) {
      add_affinity(threads, *shard, look.now_ns);
    }
    keep_below(threads.cpus, common_->possible_cpus);
    const std::uint64_t running_ns = totals.state_ns[TACHO_THREAD_RUNNING];
    threads.ran = std::exchange(running_ns_, running_ns) != running_ns;
    limits_.locate(look.cgroup);
    limits_.update(common_->hierarchies, threads, look.now_ns);
    allowance_.set(limits_.allowance());
  }

  std::shared_ptr<const SchedCommon> common_;
  const kernel::MappedArray memory_;
  std::vector<const sched_shard*> shards_;
  RisingTotals exported_;
  SharedAllowance allowance_;     // as of the last look
  CpuLimits limits_;              // the owner's, as is the next one
  std::uint64_t running_ns_ = 0;  // at the last look
};

class SchedProbe final : public Probe {
 public:
  SchedProbe(std::unique_ptr<kernel::BpfObject> loaded, const Environment& environment)
      : Probe({.name = "sched", .families = sched_families(), .bounded_maps = kBoundedMaps}, std::move(loaded)),
        blocks_("sched", object().map("sched_blocks"), sizeof(sched_shard), environment.shards.shards()),
        common_(std::make_shared<const SchedCommon>(environment.hierarchies, kernel::possible_cpus(),
                                                    object().attached("threads"))) {}

  Result<std::shared_ptr<Accumulators>> add_target(std::uint32_t index) override {
    auto shards = blocks_.add(index);
    if (!shards) {
      return std::unexpected(shards.error());
    }
    return std::make_shared<SchedAccumulators>(common_, std::move(*shards));
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

 private:
  TargetBlocks blocks_;
  std::shared_ptr<const SchedCommon> common_;
};

}  // namespace

std::vector<kernel::Variant> sched_variants() {
  return {{"task_storage", kernel::source_of("sched", sched_object), kHooks},
          {"hash", kernel::source_of("sched", sched_hash_object), kHooks},
          {"hash", kernel::source_of("sched", sched_basic_object), kBasicHooks}};
}

Result<std::unique_ptr<Probe>> load_sched_probe(const config::Config& config, const Environment& environment) {
  // Those that the kernel has room for: storage of threads, or a hash that follows pointers, or one that does not.
  const bool has_storage = kernel::has_safe_task_storage(environment.btf_path);
  const bool has_registers = kernel::kernel_release() >= std::pair(5U, 15U);  // bpf_task_pt_regs
  std::vector<kernel::Variant> variants = sched_variants();
  std::erase_if(variants, [&](const kernel::Variant& variant) {
    return variant.hooks.data() == kHooks.data() &&
           (variant.name == "task_storage" ? !has_storage : has_storage || !has_registers);
  });
  const auto online = static_cast<std::uint32_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  auto object = load_object(variants, config.probes.sched, environment, [&](kernel::ObjectSetup& setup) {
    setup.set_constant("call_slots", call_slots());
    setup.set_constant("cpus_online", online);
    const bool anatomy = config.probes.anatomy.enabled && config.probes.socket.enabled;
    setup.set_constant("anatomy", static_cast<std::uint32_t>(anatomy));
    setup.set_constant("call_waits", call_waits());
    setup.set_max_entries("latest_reads", static_cast<std::uint32_t>(environment.indices));
    set_up_blocks(setup, "sched_blocks", sizeof(sched_shard), environment);
  });
  if (!object) {
    return std::unexpected(object.error());
  }
  return std::make_unique<SchedProbe>(std::move(*object), environment);
}

}  // namespace tacho::probes
