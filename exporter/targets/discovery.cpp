#include "targets/discovery.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "bpf/lib/loss.h"
#include "kernel/iterator.h"
#include "kernel/statistics.h"
#include "targets/cgroup_tree.h"
#include "targets/processes.h"
#include "targets/self.h"

namespace tacho::targets {
namespace {

using namespace std::chrono_literals;

constexpr auto kFullLook = 30s;
constexpr auto kProblemInterval = 60s;
/// Walking all processes and files is the expensive part, and so is walking all cgroups, which anybody can cause who
/// makes some with names too long for an event: each may take this share of one CPU. What it waits for one is no part
/// of that.
constexpr auto kProcessLookSpacing = 300ms;
constexpr int kProcessLookShare = 20;

std::chrono::nanoseconds cpu_time() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

std::chrono::steady_clock::duration spacing_after(std::chrono::nanoseconds cpu_time_before) {
  return std::max<std::chrono::steady_clock::duration>(kProcessLookSpacing,
                                                       kProcessLookShare * (cpu_time() - cpu_time_before));
}

/// No event tells of who gets a listening socket from another process, or inherits it while that one lives.
constexpr auto kIdleLookSpacing = 5s;
constexpr int kIdleLookShare = 500;

std::chrono::steady_clock::duration idle_spacing_after(std::chrono::nanoseconds cpu_time_before) {
  return std::clamp<std::chrono::steady_clock::duration>(kIdleLookShare * (cpu_time() - cpu_time_before),
                                                         kIdleLookSpacing, kFullLook);
}
/// For the kubelet to name a new container.
constexpr auto kNamesPatience = 10s;
/// No event tells that a container was renamed.
constexpr auto kNamesLook = 2s;

}  // namespace

Discovery::Discovery(const kernel::BpfObject& object, Paths paths, TargetTable& table, TargetObserver& observer,
                     TargetMaps maps)
    : object_(object),
      paths_(std::move(paths)),
      table_(table),
      observer_(observer),
      maps_(std::move(maps)),
      names_(paths_.names,
             [this](const std::string& path) {
               std::error_code ignored;
               const bool visible = std::filesystem::exists(paths_.cgroupfs + path, ignored);
               return visible ? std::optional(is_inhabited(paths_.cgroupfs, path)) : std::nullopt;
             }),
      problems_(kProblemInterval) {
  world_.own_tgid = static_cast<std::uint32_t>(::getpid());
  world_.node = paths_.node;
}

Result<std::unique_ptr<Discovery>> Discovery::start(const config::Config& config, const kernel::BpfObject& object,
                                                    Paths paths, TargetTable& table, TargetObserver& observer) {
  auto maps = TargetMaps::open(object, table.indices());
  if (!maps) {
    return std::unexpected(maps.error());
  }
  std::unique_ptr<Discovery> discovery(new Discovery(object, std::move(paths), table, observer, std::move(*maps)));
  if (auto done = discovery->reconfigure(config); !done) {
    return std::unexpected(done.error());
  }
  auto ring = kernel::RingBuffer::open<target_event>(
      object, "target_events", [discovery = discovery.get()](const target_event& event) { discovery->handle(event); });
  if (!ring) {
    return std::unexpected(ring.error());
  }
  discovery->ring_ = std::move(*ring);
  return discovery;
}

Result<void> Discovery::reconfigure(const config::Config& config) {
  auto rules = TargetRules::compile(config);
  if (!rules) {
    return std::unexpected(rules.error());
  }
  if (rules->needs_cgroup_tree() && paths_.cgroupfs.empty()) {
    return fail("no cgroups are known: at the start only `self` was configured; restart tacho", EINVAL);
  }
  auto before = std::exchange(rules_, std::move(*rules));
  if (rules_->needs_self()) {
    if (auto done = look_at_own_cgroups(); !done) {
      rules_ = std::move(before);
      return std::unexpected(done.error().within("targets by `self`"));
    }
  }
  maps_.set_idle_limit(static_cast<std::uint64_t>(config.idle_limit.count()));
  maps_.set_watch_executions(rules_->needs_executions());
  maps_.set_client_rules(rules_->excludes_clients());
  // A rule may want others now: who is part of a target by a rule has to match again.
  for (const Target* target : table_.all()) {
    if (!target->wanted.discovered) {
      std::erase_if(known_, [target](const auto& process) { return process.second == target->wanted.name; });
    }
  }
  // Until the next plan there may be targets by process: they are not to miss anything.
  if (rules_->needs_executions()) {
    maps_.set_process_rules(true);
  }
  everything_due_ = true;
  next_look_ = {};
  processes_due_ = true;
  // What was asked for holds when it is reported as done, not at the next look.
  next_process_look_ = {};
  look_put_off_ = true;
  next_plan_ = Time::min();
  return {};
}

int Discovery::descriptor() const {
  return ring_->descriptor();
}

void Discovery::consume() {
  if (ring_->consume() > 0) {
    everything_due_ = true;
  }
}

Result<void> Discovery::look_at_own_cgroups() {
  if (paths_.cgroup_v1) {
    return fail("cgroup v1 is in use here: select by `cgroup` or `container`", ENOTSUP);
  }
  auto own = find_own_cgroups(object_, maps_, rules_->needs_self(config::SelfScope::pod));
  if (!own) {
    return std::unexpected(own.error());
  }
  world_.own_cgroup = std::move(own->path);
  if (rules_->needs_cgroup_tree()) {
    world_.cgroups.merge(own->cgroups);
  } else {
    world_.cgroups = std::move(own->cgroups);
  }
  return {};
}

void Discovery::report(std::uint64_t TargetTable::Shortfalls::* subject, const Error& error) {
  problems_.log(LogLevel::error, error.message, error.message + ": what was known before is kept");
  ++(table_.shortfalls().*subject);
}

/// What is made below them, events tell.
void Discovery::keep_below_refusals(CgroupWalk& walk) {
  for (const auto& [path, error] : walk.refused) {
    if (const auto itself = world_.cgroups.find(path); itself != world_.cgroups.end()) {
      walk.found.insert(*itself);
    }
    const std::string below = path + "/";
    for (auto known = world_.cgroups.lower_bound(below);
         known != world_.cgroups.end() && known->first.starts_with(below); ++known) {
      walk.found.insert(*known);
    }
  }
  if (!walk.refused.empty()) {
    report(&TargetTable::Shortfalls::cgroups, walk.refused.begin()->second);
  }
}

void Discovery::look_at_everything() {
  everything_due_ = false;
  processes_due_ = true;
  maps_.begin_look();
  looked_ = true;
  if (!rules_->needs_cgroup_tree()) {
    if (!rules_->needs_self()) {
      world_.cgroups.clear();
    }
  } else if (auto mounted = check_cgroup_mount(paths_.cgroupfs); !mounted) {
    looked_ = false;
    report(&TargetTable::Shortfalls::cgroups, mounted.error());
  } else if (auto walk = walk_cgroups(paths_.cgroupfs)) {
    keep_below_refusals(*walk);
    world_.cgroups = std::move(walk->found);
  } else {
    looked_ = false;
    report(&TargetTable::Shortfalls::cgroups, walk.error());
  }
  if (rules_->needs_self()) {
    if (auto done = look_at_own_cgroups(); !done) {
      looked_ = false;
      report(&TargetTable::Shortfalls::cgroups, done.error());
    }
  }
}

/// Who ended between the two lists has left its sockets to children that it forked between them, or to nobody: the next
/// look tells. A process whose first thread has ended runs no file, and is there all the same.
void Discovery::forget_dead_listeners() {
  if (!procfs_is_of_kernel()) {
    return;
  }
  const auto is_dead = [this](const Listener& listener) {
    std::error_code error;
    return !world_.processes.contains(listener.tgid) &&
           !std::filesystem::exists(paths_.procfs + "/" + std::to_string(listener.tgid), error) && !error;
  };
  processes_due_ = std::erase_if(world_.listeners, is_dead) > 0;
}

void Discovery::look_at_processes() {
  processes_due_ = false;
  heirs_due_ = false;
  left_behind_.clear();
  if (!rules_->needs_listeners()) {
    world_.listeners.clear();
    world_.processes.clear();
    return;
  }
  const bpf_program* lister = object_.program("list_listeners");
  if (lister == nullptr) {
    return;
  }
  if (auto listeners = kernel::read_records<Listener>(lister)) {
    world_.listeners = std::move(*listeners);
  } else {
    report(&TargetTable::Shortfalls::listeners, listeners.error());
  }
  if (auto processes = list_processes(object_, paths_.procfs, world_.own_tgid)) {
    world_.processes = std::move(*processes);
    forget_dead_listeners();
  } else {
    looked_ = false;
    report(&TargetTable::Shortfalls::processes, processes.error());
  }
}

/// The kubelet makes its link a moment after the container, so a name that is missing is looked for again, for a while;
/// pause containers never get one.
void Discovery::look_at_names(Time now) {
  std::vector<CgroupIdentity> containers;
  for (const auto& [path, id] : world_.cgroups) {
    CgroupIdentity identity = identify(path);
    if (identity.kind == CgroupIdentity::Kind::container && identity.path == path) {
      containers.push_back(std::move(identity));
    }
  }
  const std::size_t unnamed = names_.refresh(containers);
  world_.names = names_.known();
  if (names_.misses_new()) {
    names_wanted_until_ = now + kNamesPatience;
  }
  if (unnamed > 0 && now < names_wanted_until_) {
    schedule(now + kProcessLookSpacing);
  }
}

Time Discovery::run(Time now) {
  const auto losses = kernel::lost_events(object_);
  if (losses && losses->size() == TACHO_LOSS_REASONS && (*losses)[TACHO_LOST_RING_FULL] != seen_ring_losses_) {
    seen_ring_losses_ = (*losses)[TACHO_LOST_RING_FULL];
    everything_due_ = true;
    schedule(now);
  }
  if (now >= next_full_look_) {
    everything_due_ = true;
    schedule(now);
  }
  if (now >= next_names_look_) {
    next_names_look_ = now + kNamesLook;
    if (names_.outdated()) {
      schedule(now);
    }
  }
  if (now >= next_drain_look_) {
    look_at_drains(now);
  }
  if (now >= next_idle_look_) {
    next_idle_look_ = Time::max();
    processes_due_ = true;
    schedule(now);
  }
  if (now >= next_plan_) {
    if (everything_due_ && now >= next_look_) {
      const auto before = cpu_time();
      look_at_everything();
      next_full_look_ = now + kFullLook;
      next_look_ = std::chrono::steady_clock::now() + spacing_after(before);
    }
    if (!left_behind_.empty()) {
      expect_heirs();
    }
    const bool from_news = began_ && !heirs_due_;
    if (processes_due_ && from_news && !look_put_off_ && now >= next_process_look_) {
      // Who has begun to listen may fork and end before it is a member, and no event tells of that: the look comes
      // later.
      look_put_off_ = true;
      next_process_look_ = now + kProcessLookSpacing;
    }
    const bool too_early = processes_due_ && now < next_process_look_;
    if (too_early && !from_news) {
      // A plan from what is known to be out of date would watch processes that have become something else, and end
      // targets whose processes are not known yet.
      next_plan_ = next_process_look_;
      return std::min({next_plan_, next_full_look_, next_drain_look_, next_idle_look_});
    }
    // The news is complete in itself: who has begun to listen is planned for at once, and looked at later.
    next_plan_ = too_early ? next_process_look_ : Time::max();
    began_ = false;
    if (processes_due_ && !too_early) {
      const auto before = cpu_time();
      look_at_processes();
      look_put_off_ = false;
      next_process_look_ = std::chrono::steady_clock::now() + spacing_after(before);
      next_idle_look_ =
          rules_->needs_listeners() ? std::chrono::steady_clock::now() + idle_spacing_after(before) : Time::max();
      if (processes_due_) {
        schedule(next_process_look_);
      }
    }
    if (everything_due_) {
      schedule(next_look_);
    }
    replan(now);
    last_plan_ = std::chrono::steady_clock::now();
  }
  if (const auto line = news_.line(now, live_)) {
    spdlog::info("{}", *line);
  }
  return std::min({next_plan_, next_full_look_, next_drain_look_, next_idle_look_});
}

}  // namespace tacho::targets
