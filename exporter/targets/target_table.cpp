#include "targets/target_table.h"

#include <algorithm>
#include <set>

namespace tacho::targets {
namespace {

/// A target that ended waits this long for the scrape of its last values.
constexpr auto kLongestWait = std::chrono::minutes(5);

/// They cost what a live target costs.
constexpr std::ptrdiff_t kMostResting = 32;

/// Of all places, how many targets of one ordinary user have places of their own.
constexpr std::size_t kSharesOfAll = 8;
constexpr std::size_t kLeastShare = 8;

/// As an operator's log names it.
std::string title_of(const DesiredTarget& target) {
  return target.container.pod.empty() ? target.name : target.name + " (pod " + target.container.pod + ")";
}

}  // namespace

TargetTable::TargetTable(std::size_t max_targets) : slots_(max_targets + 1), epochs_(max_targets + 1) {}

Target* TargetTable::find(const Labels& labels) {
  for (std::size_t i = kOther + 1; i < slots_.size(); ++i) {
    if (slots_[i] && slots_[i]->wanted.labels == labels) {
      return slots_[i].get();
    }
  }
  return nullptr;
}

std::unique_ptr<Target>* TargetTable::oldest_of(Target::State state) {
  std::unique_ptr<Target>* oldest = nullptr;
  for (auto& slot : slots_) {
    if (slot && slot->state == state && (oldest == nullptr || slot->ended < (*oldest)->ended)) {
      oldest = &slot;
    }
  }
  return oldest;
}

std::unique_ptr<Target>* TargetTable::free_slot(TargetObserver& observer) {
  const auto empty = std::find(slots_.begin() + kOther + 1, slots_.end(), nullptr);
  if (empty != slots_.end()) {
    return &*empty;
  }
  std::unique_ptr<Target>* oldest = oldest_of(Target::State::resting);
  if (oldest == nullptr) {
    oldest = oldest_of(Target::State::ended);
  }
  if (oldest != nullptr) {
    remove(*oldest, observer);
  }
  return oldest;
}

void TargetTable::remove(std::unique_ptr<Target>& slot, TargetObserver& observer) {
  observer.target_removed(*slot);
  slot.reset();
}

Result<Target*> TargetTable::add(DesiredTarget wanted, TargetObserver& observer) {
  std::unique_ptr<Target>* slot = free_slot(observer);
  if (slot == nullptr) {
    return nullptr;
  }
  const auto index = static_cast<std::uint32_t>(slot - slots_.data());
  auto target = std::make_unique<Target>();
  target->ref = {.index = index, .epoch = ++epochs_[index]};
  target->wanted = std::move(wanted);
  if (auto added = observer.target_added(*target); !added) {
    return std::unexpected(added.error());
  }
  *slot = std::move(target);
  return slot->get();
}

void TargetTable::overflow(DesiredTarget wanted, Changes& changes, TargetObserver& observer) {
  auto& other = slots_[kOther];
  if (!other) {
    auto target = std::make_unique<Target>();
    target->ref = {.index = kOther, .epoch = ++epochs_[kOther]};
    target->wanted.name = "other";
    target->wanted.labels = {{"target", "other"}};
    if (auto added = observer.target_added(*target); !added) {
      changes.failures.push_back(added.error().within("target other").message);
      return;
    }
    other = std::move(target);
  }
  other->wanted.cgroups.merge(wanted.cgroups);
  other->wanted.processes.merge(wanted.processes);
}

void TargetTable::put_into_other(DesiredTarget wanted, const std::vector<Labels>& before, Changes& changes,
                                 TargetObserver& observer) {
  if (std::ranges::find(before, wanted.labels) == before.end()) {
    ++overflowed_;
  }
  overflow_.push_back(wanted.labels);
  overflow(std::move(wanted), changes, observer);
}

std::size_t TargetTable::largest_share() const {
  return std::max<std::size_t>(kLeastShare, (slots_.size() - 1) / kSharesOfAll);
}

std::unique_ptr<Target>* TargetTable::weaker_than(const DesiredTarget& wanted, const Shares& shares,
                                                  const TargetObserver& observer) {
  const auto share_of = [&shares](const std::string& owner) {
    const auto found = shares.find(owner);
    return owner.empty() || found == shares.end() ? 0 : found->second;
  };
  std::unique_ptr<Target>* weakest = nullptr;
  std::pair<bool, Rank> weakness;
  for (auto slot = slots_.begin() + kOther + 1; slot != slots_.end(); ++slot) {
    if (!*slot) {
      continue;
    }
    const DesiredTarget& other = (*slot)->wanted;
    const bool idle = !observer.has_answered(**slot);
    const bool greedy = idle && other.rank == Rank::loose && wanted.rank == Rank::loose &&
                        share_of(other.owner) > share_of(wanted.owner) + 1;
    if (other.rank <= wanted.rank && !greedy) {
      continue;
    }
    if (weakest == nullptr || std::pair(idle, other.rank) >= weakness) {
      weakest = &*slot;
      weakness = {idle, other.rank};
    }
  }
  return weakest;
}

TargetTable::Changes TargetTable::apply(std::vector<DesiredTarget> wanted, Time now, TargetObserver& observer) {
  Changes changes;
  const std::vector<Labels> overflowed_before = std::move(overflow_);
  overflow_.clear();
  if (slots_[kOther]) {
    slots_[kOther]->wanted.cgroups.clear();
    slots_[kOther]->wanted.processes.clear();
  }
  std::set<const Target*> seen;
  std::vector<DesiredTarget> fresh;
  for (DesiredTarget& desired : wanted) {
    Target* target = find(desired.labels);
    if (target == nullptr) {
      fresh.push_back(std::move(desired));
    } else if (!seen.insert(target).second) {
      // The same labels twice: one series, both members.
      target->wanted.cgroups.merge(desired.cgroups);
      target->wanted.processes.merge(desired.processes);
    } else {
      if (target->state != Target::State::live) {
        changes.came.push_back(title_of(desired));
      }
      target->state = Target::State::live;
      target->wanted = std::move(desired);
    }
  }
  for (const auto& slot : slots_) {
    if (slot && slot->ref.index != kOther && slot->state == Target::State::live && !seen.contains(slot.get())) {
      slot->state = Target::State::ended;
      slot->ended = now;
      slot->wanted.cgroups.clear();
      slot->wanted.processes.clear();
      ++changes.ended;
      changes.went.push_back(title_of(slot->wanted));
    }
  }
  Shares shares;
  for (const Target* target : seen) {
    ++shares[target->wanted.owner];
  }
  std::ranges::stable_sort(fresh, {}, &DesiredTarget::rank);
  for (DesiredTarget& desired : fresh) {
    if (Target* twin = find(desired.labels); twin != nullptr) {
      twin->wanted.cgroups.merge(desired.cgroups);
      twin->wanted.processes.merge(desired.processes);
      continue;
    }
    if (!desired.owner.empty() && shares[desired.owner] >= largest_share()) {
      put_into_other(std::move(desired), overflowed_before, changes, observer);
      continue;
    }
    if (std::unique_ptr<Target>* place = free_slot(observer); place == nullptr) {
      place = weaker_than(desired, shares, observer);
      if (place == nullptr) {
        put_into_other(std::move(desired), overflowed_before, changes, observer);
        continue;
      }
      --shares[(*place)->wanted.owner];
      put_into_other((*place)->wanted, overflowed_before, changes, observer);
      remove(*place, observer);
    }
    const std::string title = title_of(desired);
    const std::string name = desired.name;
    const std::string owner = desired.owner;
    if (auto added = add(std::move(desired), observer); !added) {
      changes.failures.push_back(added.error().within("target " + name).message);
    } else {
      ++changes.added;
      ++shares[owner];
      changes.came.push_back(title);
    }
  }
  if (auto done = observer.targets_changed(); !done) {
    changes.failures.push_back(done.error().message);
  }
  return changes;
}

Result<void> TargetTable::release_ended(bool scraped, Time now, TargetObserver& observer) {
  bool released = false;
  for (auto& slot : slots_) {
    if (slot && slot->state == Target::State::ended && (scraped || now - slot->ended > kLongestWait)) {
      slot->state = Target::State::resting;
    }
    if (slot && slot->state == Target::State::resting && now - slot->ended > kLongestRest) {
      remove(slot, observer);
      released = true;
    }
  }
  const auto rests = [](const auto& slot) { return slot && slot->state == Target::State::resting; };
  for (auto resting = std::ranges::count_if(slots_, rests); resting > kMostResting; --resting) {
    if (auto* const oldest = oldest_of(Target::State::resting); oldest != nullptr) {
      remove(*oldest, observer);
      released = true;
    }
  }
  return released ? observer.targets_changed() : Result<void>();
}

std::vector<const Target*> TargetTable::targets() const {
  std::vector<const Target*> all;
  for (const auto& slot : slots_) {
    if (slot && slot->state != Target::State::resting) {
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
