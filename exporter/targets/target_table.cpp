#include "targets/target_table.h"

#include <algorithm>
#include <set>

namespace tacho::targets {
namespace {

/// A target that ended waits this long for the scrape of its last values.
constexpr auto kLongestWait = std::chrono::minutes(5);

/// They cost what a live target costs.
constexpr std::ptrdiff_t kMostResting = 32;

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
    }
  }
  for (DesiredTarget& desired : fresh) {
    if (Target* twin = find(desired.labels); twin != nullptr) {
      twin->wanted.cgroups.merge(desired.cgroups);
      twin->wanted.processes.merge(desired.processes);
      continue;
    }
    const std::string name = desired.name;
    DesiredTarget copy = desired;
    auto added = add(std::move(desired), observer);
    if (!added) {
      changes.failures.push_back(added.error().within("target " + name).message);
    } else if (*added == nullptr) {
      if (std::ranges::find(overflowed_before, copy.labels) == overflowed_before.end()) {
        ++overflowed_;
      }
      overflow_.push_back(copy.labels);
      overflow(std::move(copy), changes, observer);
    } else {
      ++changes.added;
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
