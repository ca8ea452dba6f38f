#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "targets/connection_units.h"
#include "targets/discovery.h"
#include "targets/processes.h"
#include "targets/self.h"
#include "targets/target_events.h"

// What the kernel tells: the world is brought up to date without a look at all of it.

namespace tacho::targets {
namespace {

using namespace std::chrono_literals;

/// Events come in bursts: one plan for all of a burst.
constexpr auto kSettle = 50ms;
/// Parents that are looked for when a process begins to listen.
constexpr int kAncestors = 32;

}  // namespace

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
      handle_process(event);
      break;
    default:
      if (!rules_->needs_listeners()) {
        return;
      }
      handle_listener(event);
  }
  // One plan for all of a burst, none later than need be. Of who exits the sockets are closed a moment later.
  const auto now = std::chrono::steady_clock::now();
  schedule(left_behind_.empty() ? std::max(now, last_plan_ + kSettle) : now + kSettle);
}

/// Who exits, or becomes something else, is nobody's until it is looked at again. That needs no look at all the others,
/// unless it leaves a target to its children.
void Discovery::handle_process(const target_event& event) {
  maps_.forget_process(event.tgid);
  known_.erase(event.tgid);
  auto left_behind = sockets_only_of(world_, event.tgid);
  const bool listened = forget_process(world_, event.tgid);
  if (!rules_->needs_listeners()) {
    return;
  }
  if (event.kind == TACHO_PROCESS_EXECUTED) {
    // It may have kept its sockets.
    processes_due_ |= !know_process(event.tgid) || listened;
    return;
  }
  // Unless an event tells that they are closed, others have them: children, or whom it passed them to.
  left_behind_.merge(left_behind);
  const auto is_there = [this](std::uint32_t other) { return world_.processes.contains(other); };
  if (event.has_children != 0 && table_.is_last(event.tgid, is_there)) {
    expect_heirs();
  }
}

/// No event tells of who takes a target over. The kernel goes on counting for the children of its members.
void Discovery::expect_heirs() {
  processes_due_ = true;
  heirs_due_ = true;
}

bool Discovery::procfs_is_of_kernel() const {
  std::error_code error;
  return std::filesystem::read_symlink(paths_.procfs + "/self", error) == std::to_string(world_.own_tgid);
}

bool Discovery::know_process(std::uint32_t tgid) {
  // The kernel tells more than /proc, in a look at all processes, and may number them otherwise.
  const bool listed = process_lister(object_) != nullptr;
  if (listed && !procfs_is_of_kernel()) {
    return false;
  }
  for (int ancestors = 0; tgid != 0 && ancestors < kAncestors; ++ancestors) {
    auto process = read_process(paths_.procfs, tgid);
    if (!process || !*process) {
      return process.has_value();
    }
    if (listed && (*process)->executable.starts_with('[')) {
      return false;
    }
    const std::uint32_t parent = (*process)->parent;
    world_.processes.insert_or_assign(tgid, std::move(**process));
    tgid = world_.processes.contains(parent) ? 0 : parent;
  }
  return true;
}

void Discovery::handle_listener(const target_event& event) {
  processes_due_ = true;
  if (event.kind == TACHO_LISTENER_CLOSED) {
    left_behind_.erase(event.socket);
  }
  if (note_listener(world_, event) && know_process(event.tgid)) {
    if (world_.processes.contains(event.tgid)) {
      began_ = true;
    } else {
      // It is gone. Its children may have the socket: a look tells.
      forget_process(world_, event.tgid);
    }
  }
}

void Discovery::handle_cgroup(const target_event& event) {
  const auto path = path_of(event);
  if (!path) {
    everything_due_ = true;
    return;
  }
  if (!rules_->needs_cgroup_tree() && !is_around_self(*path, world_.own_cgroup)) {
    return;
  }
  note_cgroup(world_, event, *path);
  if (event.kind == TACHO_CGROUP_CREATED) {
    born_[*path] = std::chrono::steady_clock::now();
    // It may be gone before the next plan.
    if (const auto service = service_of_connections(*path)) {
      templates_.insert(service->path);
    }
  }
}

}  // namespace tacho::targets
