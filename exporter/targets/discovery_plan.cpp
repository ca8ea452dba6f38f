#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "targets/cgroup_tree.h"
#include "targets/connection_units.h"
#include "targets/discovery.h"

// From the world to the targets, and from these to the kernel.

namespace tacho::targets {
namespace {

using namespace std::chrono_literals;

/// Targets added at a time: each has a handful of descriptors until the kernel has its blocks.
constexpr std::size_t kPiece = 64;
constexpr auto kRetry = 1s;
/// No event tells when the last process has left a cgroup.
constexpr auto kDrainLookSpacing = 1s;
/// Between the making of a cgroup and its first process.
constexpr auto kMovingIn = 10s;

}  // namespace

Earlier Discovery::earlier(Time now) {
  Earlier earlier;
  earlier.processes = known_;
  for (const Target* target : table_.all()) {
    if (target->wanted.discovered && !target->wanted.identity.path.empty()) {
      earlier.cgroups.insert(target->wanted.identity.path);
      if (is_template(target->wanted.identity)) {
        templates_.insert(target->wanted.identity.path);
      }
    }
    if (!target->wanted.mark.empty()) {
      earlier.marks[target->wanted.identity.path] = target->wanted.mark;
    }
  }
  std::erase_if(templates_, [this](const std::string& slice) { return !world_.cgroups.contains(slice); });
  earlier.cgroups.insert(templates_.begin(), templates_.end());
  earlier.templates = templates_;
  std::erase_if(born_, [now](const auto& birth) { return now - birth.second > kMovingIn; });
  earlier.inhabited = [this](const std::string& path) {
    return born_.contains(path) || is_inhabited(paths_.cgroupfs, path);
  };
  return earlier;
}

void Discovery::look_at_drains(Time now) {
  std::erase_if(born_, [now](const auto& birth) { return now - birth.second > kMovingIn; });
  next_drain_look_ = now + kDrainLookSpacing;
  if (std::ranges::any_of(draining_, [this](const std::string& path) {
        return !born_.contains(path) && !is_inhabited(paths_.cgroupfs, path);
      })) {
    schedule(now);
  }
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
  apply(std::move(wanted), now);
}

void Discovery::apply(std::vector<DesiredTarget> wanted, Time now) {
  bool grew = false;
  bool again = false;
  bool first = true;
  std::vector<std::string> failures;
  do {
    TargetTable::Changes changes =
        first ? table_.apply(std::move(wanted), now, observer_, kPiece) : table_.add_waiting(now, observer_, kPiece);
    live_ = table_.live();
    news_.note(changes.came, changes.went);
    first = false;
    if (auto done = observer_.targets_changed(); !done) {
      ++table_.shortfalls().failed;
      changes.failures.push_back(done.error().message);
    }
    for (const Target* target : table_.all()) {
      maps_.set_target(target->ref, target->wanted.settings);
    }
    const auto processes = table_.processes();
    const auto assigned = maps_.assign(table_.cgroups(), processes);
    maps_.set_process_rules(!processes.empty() || rules_->needs_executions());
    // Not only new targets: who comes back has sockets and threads that are older than its membership.
    grew |= changes.added > 0 || assigned.grew;
    again |= changes.postponed;
    failures.insert(failures.end(), changes.failures.begin(), changes.failures.end());
    table_.shortfalls().refused += assigned.refused;
    if (assigned.refused > 0) {
      problems_.log(LogLevel::error, "members",
                    std::to_string(assigned.refused) + " cgroups or processes of targets are not counted, since the " +
                        "kernel takes no more of them: " + assigned.why);
    }
    table_.all_count();
    observer_.targets_known();
  } while (table_.has_waiting());
  await_comebacks();
  const bool looked = looked_ && !processes_due_;
  if (looked) {
    looked_ = false;
    maps_.end_look([this](std::uint32_t tgid) { return world_.processes.contains(tgid); });
  }
  if (!failures.empty()) {
    problems_.log(
        LogLevel::error, "targets",
        std::to_string(failures.size()) +
            " targets cannot be watched, or not by all probes, tried again every second: " + failures.front());
  }
  if (again) {
    schedule(now);
  } else if (!failures.empty()) {
    schedule(now + kRetry);
  }
  if (looked && on_looked_) {
    on_looked_();
  }
  if (grew && on_added_) {
    on_added_();
  }
}

void Discovery::await_comebacks() {
  TargetMaps::Awaited places;
  for (const Target* target : table_.all()) {
    const std::string& path = target->wanted.identity.path;
    const auto slash = path.rfind('/');
    if (path.size() < 2 || slash == std::string::npos) {
      continue;
    }
    if (const auto parent = world_.cgroups.find(slash == 0 ? "/" : path.substr(0, slash));
        parent != world_.cgroups.end()) {
      places.emplace(std::pair(parent->second, path.substr(slash + 1)), target->ref);
    }
  }
  maps_.await(places);
}

}  // namespace tacho::targets
