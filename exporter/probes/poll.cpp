#include <bpf/poll.object.h>
#include <bpf/poll_basic.object.h>
#include <spdlog/spdlog.h>

#include "kernel/features.h"
#include "kernel/iterator.h"
#include "kernel/kernel_types.h"
#include "probes/load.h"
#include "probes/poll_decode.h"
#include "probes/registry.h"
#include "probes/rising.h"
#include "probes/target_blocks.h"

namespace tacho::probes {
namespace {

using kernel::Alternative;
using kernel::Hook;

/// The method that sees only the calls that sleep.
constexpr std::string_view kByScheduler = "scheduler";

/// Exits first: an exit whose enter was not seen is ignored, an enter whose exit was not seen would last forever.
constexpr std::array<std::string_view, 6> kClassic{"poll_exit_epoll_pwait",  "poll_exit_ppoll",  "poll_exit_pselect6",
                                                   "poll_enter_epoll_pwait", "poll_enter_ppoll", "poll_enter_pselect6"};
// Calls that arm64 does not have, and epoll_pwait2: Linux 5.11.
constexpr std::array<std::string_view, 8> kSomewhere{
    "poll_exit_epoll_wait",  "poll_exit_poll",  "poll_exit_select",  "poll_exit_epoll_pwait2",
    "poll_enter_epoll_wait", "poll_enter_poll", "poll_enter_select", "poll_enter_epoll_pwait2"};
constexpr std::array<std::string_view, 6> kFunctions{"poll_fexit_do_epoll_wait",   "poll_fexit_do_sys_poll",
                                                     "poll_fexit_core_sys_select", "poll_fentry_do_epoll_wait",
                                                     "poll_fentry_do_sys_poll",    "poll_fentry_core_sys_select"};
constexpr std::array<std::string_view, 2> kRaw{"poll_raw_exit", "poll_raw_enter"};
constexpr std::array<std::string_view, 1> kSwitch{"poll_switched"};
constexpr std::array<std::string_view, 1> kRawSwitch{"raw_poll_switched"};
constexpr std::array<std::string_view, 1> kThreads{"poll_thread_exit"};
constexpr std::array<std::string_view, 1> kRawThreads{"raw_poll_thread_exit"};
constexpr std::array<std::string_view, 1> kOlder{"poll_adopt"};

constexpr Alternative kFunction{"fentry", kFunctions};
constexpr Alternative kScheduler{kByScheduler, kSwitch};
constexpr Alternative kRawScheduler{kByScheduler, kRawSwitch};
constexpr Alternative kTracepoint{"tracepoint", kClassic, kSomewhere};
constexpr Alternative kRawTracepoint{"raw_tracepoint", kRaw};
// Tracepoints of system calls come last: they are tried only if they are asked for.
constexpr std::array kPollWays{kFunction, kScheduler, kTracepoint, kRawTracepoint};
constexpr std::array kBasicPollWays{kFunction, kScheduler, kRawScheduler, kTracepoint, kRawTracepoint};
constexpr std::size_t kWaysToAskFor = 2;
constexpr std::array kThreadWays{Alternative{"tp_btf", kThreads}};
constexpr std::array kBasicThreadWays{Alternative{"tp_btf", kThreads}, Alternative{"raw_tracepoint", kRawThreads}};
constexpr std::array kOlderWays{Alternative{"iterator", kOlder}};

using Hooks = std::array<Hook, 3>;

constexpr Hooks kHooks{Hook{"thread_exit", kThreadWays}, Hook{"poll", kPollWays}, Hook{"older_waits", kOlderWays}};
constexpr Hooks kBasicHooks{Hook{"thread_exit", kBasicThreadWays}, Hook{"poll", kBasicPollWays},
                            Hook{"older_waits", kOlderWays}};

/// Leaves out the ways that every system call of the machine pays for, and the scheduler where it may not be used.
void keep_cheap_ways(Hooks& hooks, bool scheduler_may) {
  for (Hook& hook : hooks) {
    if (hook.name == "poll") {
      hook.alternatives = hook.alternatives.first(scheduler_may ? hook.alternatives.size() - kWaysToAskFor : 1);
    }
  }
}

/// The flag of a thread that the scheduler sets when the thread stops running, and that the return to user mode clears
/// (TIF_NEED_FPU_LOAD): x86 has it since Linux 5.2 and renumbered it in 6.18. Other architectures have none that is set
/// each time.
std::uint64_t unreturned_flag() {
#ifdef __x86_64__
  constexpr unsigned kBit = 14;
  constexpr unsigned kLaterBit = 19;
  return 1ULL << (kernel::kernel_release() < std::pair(6U, 18U) ? kBit : kLaterBit);
#else
  return 0;
#endif
}

constexpr std::array<std::string_view, 2> kBoundedMaps{"poll_blocks", "poll_states"};

/// A target's polls.
class PollAccumulators final : public Accumulators {
 public:
  struct Sees {
    bool polls = false;
    bool only_sleeps = false;  ///< of polls, those that sleep
    bool exits = false;        ///< of threads
  };
  PollAccumulators(kernel::MappedArray shards, const Sees& sees) : shards_(std::move(shards)), sees_(sees) {}

  void sample(const Look& look, TargetSample& sample) override {
    if (sees_.polls) {
      const PollSnapshot s = snapshot();
      sample.poll = sample_of(s, keep_rising(s.times, look.now_ns));
      sample.poll->counters.only_sleeps = sees_.only_sleeps;
      if (!sees_.exits) {
        sample.poll->threads = 0;  // a share of their time would be one of the dead, too
      }
    }
  }

  void read(const Look& look, const metrics::Gauges& gauges, metrics::Row& row) override {
    const PollSnapshot s = snapshot();
    decode(s, keep_rising(s.times, look.now_ns), gauges, row);
  }

 private:
  [[nodiscard]] PollSnapshot snapshot() const {
    PollSnapshot sum;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      add_shard(sum, shards_.at<poll_shard>(i));
    }
    return sum;
  }

  /// The clock of a program on another CPU may be a little ahead of ours: a counter must not step back for that. And it
  /// must not leap for a torn read, since it could never come back.
  std::uint64_t keep_rising(const PollTimes& times, std::int64_t now_ns) {
    return idle_ns_.raise(times.in_step ? times.total_ns(now_ns) : 0);
  }

  const kernel::MappedArray shards_;
  const Sees sees_;
  Rising<std::uint64_t> idle_ns_;
};

class PollProbe final : public Probe {
 public:
  PollProbe(std::unique_ptr<kernel::BpfObject> loaded, const Environment& environment)
      : Probe({.name = "poll", .families = poll_families(), .bounded_maps = kBoundedMaps}, std::move(loaded)),
        blocks_("poll", object().map("poll_blocks"), sizeof(poll_shard), environment.shards.shards()) {}

  Result<std::shared_ptr<Accumulators>> add_target(std::uint32_t index) override {
    auto shards = blocks_.add(index);
    if (!shards) {
      return std::unexpected(shards.error());
    }
    const PollAccumulators::Sees sees{.polls = object().attached("poll"),
                                      .only_sleeps = object().method("poll") == kByScheduler,
                                      .exits = object().attached("thread_exit")};
    return std::make_shared<PollAccumulators>(std::move(*shards), sees);
  }

  void remove_target(std::uint32_t index) override { blocks_.remove(index); }

  Result<void> flush() override { return blocks_.flush(); }

  Result<void> look_after(Occasion occasion, std::int64_t /*now_ns*/) override {
    if (occasion != Occasion::targets_added) {
      return {};
    }
    const bpf_program* program = object().program("poll_adopt");
    return program != nullptr ? kernel::run_iterator(program) : fail("waits that began before tacho are not known");
  }

 private:
  TargetBlocks blocks_;
};

}  // namespace

std::vector<kernel::Variant> poll_variants() {
  return {{"task_storage", kernel::source_of("poll", poll_object), kHooks},
          {"hash", kernel::source_of("poll", poll_basic_object), kBasicHooks}};
}

Result<std::unique_ptr<Probe>> load_poll_probe(const config::Config& config, const Environment& environment) {
  const config::Attach attach = config.probes.poll.attach;
  if (attach == config::Attach::tracepoint) {
    if (auto tracefs = kernel::ensure_tracefs(); !tracefs) {
      spdlog::warn(
          "{}: the tracepoints of polling calls are unavailable; a container's start takes --volume "
          "/sys/kernel/tracing:/sys/kernel/tracing:ro",
          tracefs.error().message);
    }
  }
  auto variants = poll_variants();
  Hooks hooks = kHooks;
  Hooks basic_hooks = kBasicHooks;
  if (attach != config::Attach::tracepoint && attach != config::Attach::raw_tracepoint) {
    keep_cheap_ways(hooks, kernel::has_safe_task_storage(environment.btf_path));
    keep_cheap_ways(basic_hooks, true);
  }
  variants.front().hooks = hooks;
  variants.back().hooks = basic_hooks;
  auto object = load_object(variants, config.probes.poll, environment, [&](kernel::ObjectSetup& setup) {
    setup.set_constant("unreturned_flag", unreturned_flag());
    set_up_blocks(setup, "poll_blocks", sizeof(poll_shard), environment);
  });
  if (!object) {
    return std::unexpected(object.error());
  }
  return std::make_unique<PollProbe>(std::move(*object), environment);
}

}  // namespace tacho::probes
