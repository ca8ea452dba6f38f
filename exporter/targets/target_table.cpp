#include "targets/target_table.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tacho::targets {
namespace {

/// A target that ended waits this long for the scrape of its last values.
constexpr auto kLongestWait = std::chrono::minutes(5);

/// They cost what a live target costs.
constexpr std::size_t kMostResting = 32;

/// As an operator's log names it.
std::string title_of(const DesiredTarget& target) {
  return target.container.pod.empty() ? target.name : target.name + " (pod " + target.container.pod + ")";
}

}  // namespace

TargetTable::TargetTable(std::size_t max_targets) : slots_(max_targets + 1), epochs_(max_targets + 1) {}

void TargetTable::remove(std::unique_ptr<Target>& slot, TargetObserver& observer) {
  observer.target_removed(*slot);
  slot.reset();
}

void TargetTable::add(std::unique_ptr<Target>& slot, DesiredTarget wanted, Changes& changes, TargetObserver& observer) {
  const auto index = static_cast<std::uint32_t>(&slot - slots_.data());
  auto target = std::make_unique<Target>();
  target->ref = {.index = index, .epoch = ++epochs_[index]};
  target->wanted = std::move(wanted);
  if (auto added = observer.target_added(*target); !added) {
    ++shortfalls_.failed;
    changes.failures.push_back(added.error().within("target " + target->wanted.name).message);
    return;
  }
  ++changes.added;
  ++shares_[target->wanted.owner];
  changes.came.push_back(title_of(target->wanted));
  slot = std::move(target);
}

void TargetTable::overflow(DesiredTarget wanted, Changes& changes, TargetObserver& observer) {
  auto& other = slots_[kOther];
  if (!other) {
    auto target = std::make_unique<Target>();
    target->ref = {.index = kOther, .epoch = ++epochs_[kOther]};
    target->wanted.name = "other";
    target->wanted.labels = {{"target", "other"}};
    if (auto added = observer.target_added(*target); !added) {
      ++shortfalls_.failed;
      changes.failures.push_back(added.error().within("target other").message);
      return;
    }
    other = std::move(target);
  }
  other->wanted.cgroups.merge(wanted.cgroups);
  other->wanted.processes.merge(wanted.processes);
}

void TargetTable::put_into_other(DesiredTarget wanted, Changes& changes, TargetObserver& observer) {
  overflowed_ += static_cast<std::uint64_t>(!overflowed_before_.contains(wanted.labels));
  overflow_.insert(wanted.labels);
  overflow(std::move(wanted), changes, observer);
}

void TargetTable::vacate(Target& target, Time now, Changes& changes, TargetObserver& observer) {
  --shares_[target.wanted.owner];
  put_into_other(target.wanted, changes, observer);
  target.state = Target::State::ended;
  target.ended = now;
  target.wanted.cgroups.clear();
  target.wanted.processes.clear();
}

TargetTable::Changes TargetTable::apply(std::vector<DesiredTarget> wanted, Time now, TargetObserver& observer,
                                        std::size_t most) {
  Changes before;
  overflowed_before_ = std::exchange(overflow_, {});
  waiting_.clear();
  successors_.clear();
  if (slots_[kOther]) {
    slots_[kOther]->wanted.cgroups.clear();
    slots_[kOther]->wanted.processes.clear();
  }
  std::map<Labels, Target*> known;
  for (std::size_t i = kOther + 1; i < slots_.size(); ++i) {
    if (slots_[i]) {
      known.emplace(slots_[i]->wanted.labels, slots_[i].get());
    }
  }
  std::map<Labels, DesiredTarget*> seen;
  for (DesiredTarget& desired : wanted) {
    // The same labels twice: one series, both members.
    if (const auto twin = seen.find(desired.labels); twin != seen.end()) {
      twin->second->cgroups.merge(desired.cgroups);
      twin->second->processes.merge(desired.processes);
    } else if (const auto target = known.find(desired.labels); target != known.end()) {
      if (target->second->state != Target::State::live) {
        before.came.push_back(title_of(desired));
      }
      target->second->state = Target::State::live;
      target->second->wanted = std::move(desired);
      seen.emplace(target->first, &target->second->wanted);
    } else {
      Labels labels = desired.labels;
      seen.emplace(std::move(labels), &waiting_.emplace_back(std::move(desired)));
    }
  }
  for (const auto& slot : slots_) {
    if (slot && slot->ref.index != kOther && slot->state == Target::State::live &&
        !seen.contains(slot->wanted.labels)) {
      slot->state = Target::State::ended;
      slot->ended = now;
      slot->wanted.cgroups.clear();
      slot->wanted.processes.clear();
      ++before.ended;
      before.went.push_back(title_of(slot->wanted));
    }
  }
  shares_.clear();
  for (auto slot = slots_.begin() + kOther + 1; slot != slots_.end(); ++slot) {
    if (*slot && (*slot)->state == Target::State::live) {
      ++shares_[(*slot)->wanted.owner];
    }
  }
  std::ranges::stable_sort(waiting_, {}, &DesiredTarget::rank);
  Changes changes = add_waiting(now, observer, most);
  changes.ended = before.ended;
  changes.came.insert(changes.came.begin(), before.came.begin(), before.came.end());
  changes.went = std::move(before.went);
  return changes;
}

void TargetTable::add_successors(Changes& changes, TargetObserver& observer) {
  for (auto& [index, desired] : std::exchange(successors_, {})) {
    remove(slots_[index], observer);
    --shares_[desired.owner];  // kept for it
    add(slots_[index], std::move(desired), changes, observer);
  }
}

TargetTable::Changes TargetTable::add_waiting(Time now, TargetObserver& observer, std::size_t most) {
  Changes changes;
  most -= std::min(most, successors_.size());
  add_successors(changes, observer);
  // Within a step places only fill up: what was not found once is not looked for again, for each of many targets.
  std::size_t occupied = kOther + 1;  // all places before this one are
  bool full = false;
  std::optional<bool> any_ended;
  std::set<std::pair<Rank, std::string>> strong;  // for whom nobody is weaker
  const auto weaker = [&](const DesiredTarget& desired) -> Target* {
    const auto like = std::pair(desired.rank, desired.rank == Rank::loose ? desired.owner : std::string());
    Target* const found = strong.contains(like) ? nullptr : weaker_than(desired, observer);
    if (found == nullptr) {
      strong.insert(like);
    }
    return found;
  };
  for (; most > 0 && !waiting_.empty(); --most) {
    DesiredTarget desired = std::move(waiting_.front());
    waiting_.pop_front();
    const bool has_its_share = !desired.owner.empty() && shares_[desired.owner] >= largest_share();
    auto* const slot = has_its_share || full ? nullptr : free_slot(occupied, now, observer);
    full = full || (!has_its_share && slot == nullptr);
    if (full && !any_ended) {
      any_ended = has_ended_ones();
    }
    if (slot != nullptr) {
      add(*slot, std::move(desired), changes, observer);
      if (!*slot) {
        occupied = std::min(occupied, static_cast<std::size_t>(slot - slots_.data()));
      }
    } else if (!has_its_share && *any_ended) {
      changes.postponed = true;
      if (overflowed_before_.contains(desired.labels)) {
        put_into_other(std::move(desired), changes, observer);
      }
    } else if (Target* const other = has_its_share ? nullptr : weaker(desired); other != nullptr) {
      vacate(*other, now, changes, observer);
      ++shares_[desired.owner];
      successors_.emplace(other->ref.index, std::move(desired));
    } else {
      put_into_other(std::move(desired), changes, observer);
    }
  }
  return changes;
}

bool TargetTable::release_ended(Time seen, Time now, TargetObserver& observer) {
  bool released = false;
  for (auto& slot : slots_) {
    if (slot && slot->state == Target::State::ended && (slot->ended < seen || now - slot->ended > kLongestWait)) {
      slot->state = Target::State::resting;
    }
    if (slot && slot->state == Target::State::resting && now - slot->ended > kLongestRest) {
      remove(slot, observer);
      released = true;
    }
  }
  std::vector<std::unique_ptr<Target>*> resting;
  for (auto& slot : slots_) {
    if (slot && slot->state == Target::State::resting) {
      resting.push_back(&slot);
    }
  }
  if (resting.size() > kMostResting) {
    std::ranges::stable_sort(resting, {}, [](const auto* slot) { return (*slot)->ended; });
    for (auto* const slot : std::span(resting).first(resting.size() - kMostResting)) {
      remove(*slot, observer);
    }
    released = true;
  }
  return released;
}

std::vector<std::uint32_t> TargetTable::vacant(std::size_t most) const {
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = kOther + 1; i < slots_.size() && indices.size() < most; ++i) {
    if (!slots_[i]) {
      indices.push_back(i);
    }
  }
  return indices;
}

void TargetTable::all_count() {
  for (const auto& slot : slots_) {
    if (slot) {
      slot->counts = true;
    }
  }
}

std::vector<const Target*> TargetTable::targets() const {
  std::vector<const Target*> all;
  for (const auto& slot : slots_) {
    if (slot && slot->counts && slot->state != Target::State::resting) {
      all.push_back(slot.get());
    }
  }
  return all;
}

std::vector<const Target*> TargetTable::all() const {
  std::vector<const Target*> all;
  for (const auto& slot : slots_) {
    if (slot) {
      all.push_back(slot.get());
    }
  }
  return all;
}

std::size_t TargetTable::live() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(slots_, [](const auto& slot) { return slot && slot->state == Target::State::live; }));
}

std::map<std::uint64_t, target_ref> TargetTable::cgroups() const {
  std::map<std::uint64_t, target_ref> all;
  for (const auto& slot : slots_) {
    if (slot) {
      for (const std::uint64_t id : slot->wanted.cgroups) {
        all.emplace(id, slot->ref);
      }
    }
  }
  return all;
}

bool TargetTable::is_last(std::uint32_t tgid, const std::function<bool(std::uint32_t)>& is_there) const {
  return std::ranges::any_of(slots_, [&](const auto& slot) {
    return slot && slot->wanted.processes.contains(tgid) && std::ranges::none_of(slot->wanted.processes, is_there);
  });
}

std::map<std::uint32_t, target_ref> TargetTable::processes() const {
  std::map<std::uint32_t, target_ref> all;
  for (const auto& slot : slots_) {
    if (slot) {
      for (const std::uint32_t tgid : slot->wanted.processes) {
        all.emplace(tgid, slot->ref);
      }
    }
  }
  return all;
}

}  // namespace tacho::targets
