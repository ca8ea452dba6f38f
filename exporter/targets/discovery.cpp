#include "targets/discovery.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
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

/// Events come in bursts: one plan for all of a burst.
constexpr auto kSettle = 50ms;
constexpr auto kFullLook = 30s;
/// Walking all processes and files is the expensive part.
constexpr auto kProcessLookSpacing = 300ms;
/// For the kubelet to name a new container.
constexpr auto kNamesPatience = 10s;
/// No event tells when the last process has left a cgroup.
constexpr auto kDrainLookSpacing = 1s;
/// Between the making of a cgroup and its first process.
constexpr auto kMovingIn = 10s;
/// No event tells that a container was renamed.
constexpr auto kNamesLook = 2s;

}  // namespace

Discovery::Discovery(const kernel::BpfObject& object, Paths paths, TargetTable& table, std::mutex& mutex,
                     TargetObserver& observer, TargetMaps maps)
    : object_(object),
      paths_(std::move(paths)),
      table_(table),
      mutex_(mutex),
      observer_(observer),
      maps_(std::move(maps)),
      names_(paths_.names) {
  world_.own_tgid = static_cast<std::uint32_t>(::getpid());
  world_.node = paths_.node;
}

Result<std::unique_ptr<Discovery>> Discovery::start(const config::Config& config, const kernel::BpfObject& object,
                                                    Paths paths, TargetTable& table, std::mutex& mutex,
                                                    TargetObserver& observer) {
  auto maps = TargetMaps::open(object, table.indices());
  if (!maps) {
    return std::unexpected(maps.error());
  }
  std::unique_ptr<Discovery> discovery(
      new Discovery(object, std::move(paths), table, mutex, observer, std::move(*maps)));
  if (auto done = discovery->reconfigure(config); !done) {
    return std::unexpected(done.error());
  }
  discovery->ring_.reset(ring_buffer__new(object.map("target_events"), handle_record, discovery.get(), nullptr));
  if (!discovery->ring_) {
    return fail_errno("cannot read the ring buffer of target events");
  }
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
  // Until the next plan there may be targets by process: they are not to miss anything.
  if (rules_->needs_executions()) {
    maps_.set_process_rules(true);
  }
  everything_due_ = true;
  processes_due_ = true;
  next_plan_ = Time::min();
  return {};
}

int Discovery::descriptor() const {
  return ring_buffer__epoll_fd(ring_.get());
}

void Discovery::consume() {
  ring_buffer__consume(ring_.get());
}

int Discovery::handle_record(void* context, void* data, std::size_t size) {
  auto* const discovery = static_cast<Discovery*>(context);
  try {
    if (size >= sizeof(target_event)) {
      discovery->handle(*static_cast<const target_event*>(data));
    }
  } catch (const std::exception& error) {
    // libbpf is C: nothing may pass through it.
    spdlog::error("an event of discovery is lost: {}", error.what());
    discovery->everything_due_ = true;
  }
  return 0;
}

void Discovery::schedule(Time when) {
  next_plan_ = std::min(next_plan_, when);
}

void Discovery::handle(const target_event& event) {
  switch (event.kind) {
    case TACHO_CGROUP_CREATED:
    case TACHO_CGROUP_REMOVED:
      handle_cgroup(event);
      break;
    case TACHO_PROCESS_EXECUTED:
    case TACHO_PROCESS_EXITED:
      maps_.forget_process(event.tgid);
      known_.erase(event.tgid);
      processes_due_ = true;
      break;
    default:
      if (!rules_->needs_listeners()) {
        return;
      }
      processes_due_ = true;
  }
  schedule(std::chrono::steady_clock::now() + kSettle);
}

void Discovery::handle_cgroup(const target_event& event) {
  if (event.path_length <= 1 || event.path_length >= TACHO_EVENT_PATH) {
    everything_due_ = true;
    return;
  }
  std::string path(event.path, event.path_length - 1);
  if (!rules_->needs_cgroup_tree() && !is_around_self(path, world_.own_cgroup)) {
    return;
  }
  if (event.kind == TACHO_CGROUP_CREATED) {
    born_[path] = std::chrono::steady_clock::now();
    world_.cgroups[std::move(path)] = event.cgroup;
  } else if (const auto at = world_.cgroups.find(path); at != world_.cgroups.end() && at->second == event.cgroup) {
    world_.cgroups.erase(at);
    // Who listened in it is gone.
    std::erase_if(world_.listeners, [&event](const Listener& l) { return l.cgroup == event.cgroup; });
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
  world_.cgroups.merge(own->cgroups);
  return {};
}

void Discovery::look_at_everything() {
  world_.cgroups = rules_->needs_cgroup_tree() ? walk_cgroups(paths_.cgroupfs) : std::map<std::string, std::uint64_t>{};
  if (rules_->needs_self()) {
    if (auto done = look_at_own_cgroups(); !done) {
      spdlog::warn("{}", done.error().message);
    }
  }
  everything_due_ = false;
  processes_due_ = true;
}

void Discovery::look_at_processes() {
  processes_due_ = false;
  if (!rules_->needs_listeners()) {
    world_.listeners.clear();
    world_.processes.clear();
    return;
  }
  const bpf_program* lister = object_.program("list_listeners");
  if (lister == nullptr) {
    return;
  }
  auto listeners = kernel::read_records<Listener>(lister);
  if (!listeners) {
    spdlog::warn("{}: servers are not discovered until it works", listeners.error().message);
    return;
  }
  world_.listeners = std::move(*listeners);
  world_.processes = list_processes(object_, paths_.procfs, world_.own_tgid);
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

Earlier Discovery::earlier(Time now) {
  Earlier earlier;
  earlier.processes = known_;
  {
    const std::lock_guard lock(mutex_);
    for (const Target* target : table_.all()) {
      if (target->wanted.discovered && !target->wanted.identity.path.empty()) {
        earlier.cgroups.insert(target->wanted.identity.path);
      }
      if (!target->wanted.mark.empty()) {
        earlier.marks[target->wanted.identity.path] = target->wanted.mark;
      }
    }
  }
  std::erase_if(born_, [now](const auto& birth) { return now - birth.second > kMovingIn; });
  earlier.inhabited = [this](const std::string& path) {
    return born_.contains(path) || is_inhabited(paths_.cgroupfs, path);
  };
  return earlier;
}

bool Discovery::has_drained() const {
  return std::ranges::any_of(draining_, [this](const std::string& path) {
    return !born_.contains(path) && !is_inhabited(paths_.cgroupfs, path);
  });
}

void Discovery::replan(Time now) {
  look_at_names(now);
  auto wanted = rules_->plan(world_, earlier(now));
  auto absent = rules_->absent(wanted);
  for (const std::string& name : absent) {
    if (reported_absent_.insert(name).second) {
      spdlog::warn("target {} matches nothing yet: it is watched for", name);
    }
  }
  absent_.set(std::move(absent));
  known_.clear();
  draining_.clear();
  for (const DesiredTarget& target : wanted) {
    if (target.identity.path.empty()) {
      for (const std::uint32_t tgid : target.processes) {
        known_[tgid] = target.name;
      }
    }
    if (target.drains) {
      draining_.push_back(target.identity.path);
    }
  }
  next_drain_look_ = draining_.empty() ? Time::max() : now + kDrainLookSpacing;
  TargetTable::Changes changes;
  TargetMaps::Assigned assigned;
  {
    const std::lock_guard lock(mutex_);
    changes = table_.apply(std::move(wanted), now, observer_);
    live_ = table_.live();
    for (const Target* target : table_.targets()) {
      maps_.set_target(target->ref, target->wanted.settings);
    }
    const auto processes = table_.processes();
    assigned = maps_.assign(table_.cgroups(), processes);
    counters_.refused_entries += assigned.refused;
    maps_.set_process_rules(!processes.empty() || rules_->needs_executions());
  }
  for (const std::string& failure : changes.failures) {
    spdlog::error("{}", failure);
  }
  news_.note(changes.came, changes.went);
  // Not only new targets: who comes back has sockets and threads that are older than its membership.
  if ((changes.added > 0 || assigned.grew) && on_added_) {
    on_added_();
  }
}

Time Discovery::run(Time now) {
  const auto losses = kernel::read_per_cpu_counters(object_.map("lost_events"), TACHO_LOSS_REASONS);
  if (losses && (*losses)[TACHO_LOST_RING_FULL] != seen_ring_losses_) {
    seen_ring_losses_ = (*losses)[TACHO_LOST_RING_FULL];
    ++counters_.ring_losses;
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
    std::erase_if(born_, [now](const auto& birth) { return now - birth.second > kMovingIn; });
    next_drain_look_ = now + kDrainLookSpacing;
    if (has_drained()) {
      schedule(now);
    }
  }
  if (now >= next_plan_) {
    if (everything_due_) {
      look_at_everything();
      next_full_look_ = now + kFullLook;
    }
    const Time next_process_look = last_process_look_ + kProcessLookSpacing;
    if (processes_due_ && now < next_process_look) {
      // A plan from what is known to be out of date would watch processes that have become something else.
      next_plan_ = next_process_look;
      return std::min({next_plan_, next_full_look_, next_drain_look_});
    }
    next_plan_ = Time::max();
    if (processes_due_) {
      look_at_processes();
      last_process_look_ = now;
    }
    replan(now);
  }
  if (const auto line = news_.line(now, live_)) {
    spdlog::info("{}", *line);
  }
  return std::min({next_plan_, next_full_look_, next_drain_look_});
}

}  // namespace tacho::targets
