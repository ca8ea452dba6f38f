#include <algorithm>
#include <utility>

#include "targets/target_table.h"

// Which place of the table a new target gets.

namespace tacho::targets {
namespace {

/// Of all places, how many targets of one ordinary user have places of their own.
constexpr std::size_t kSharesOfAll = 8;
constexpr std::size_t kLeastShare = 8;

}  // namespace

std::unique_ptr<Target>* TargetTable::oldest_of(Target::State state, Time before) {
  std::unique_ptr<Target>* oldest = nullptr;
  for (auto& slot : slots_) {
    if (slot && slot->state == state && slot->ended < before && (oldest == nullptr || slot->ended < (*oldest)->ended)) {
      oldest = &slot;
    }
  }
  return oldest;
}

/// Not the place of a target that ended in this very plan: the kernel still takes its members for members.
std::unique_ptr<Target>* TargetTable::free_slot(std::size_t& occupied, Time now, TargetObserver& observer) {
  const auto empty = std::find(slots_.begin() + static_cast<std::ptrdiff_t>(occupied), slots_.end(), nullptr);
  occupied = static_cast<std::size_t>(empty - slots_.begin());
  if (empty != slots_.end()) {
    return &*empty;
  }
  std::unique_ptr<Target>* oldest = oldest_of(Target::State::resting, Time::max());
  if (oldest == nullptr) {
    oldest = oldest_of(Target::State::ended, now);
  }
  if (oldest != nullptr) {
    remove(*oldest, observer);
  }
  return oldest;
}

std::size_t TargetTable::largest_share() const {
  return std::max<std::size_t>(kLeastShare, (slots_.size() - 1) / kSharesOfAll);
}

Target* TargetTable::weaker_than(const DesiredTarget& wanted, const TargetObserver& observer) const {
  const auto share_of = [this](const std::string& owner) {
    const auto found = shares_.find(owner);
    return owner.empty() || found == shares_.end() ? 0 : found->second;
  };
  Target* weakest = nullptr;
  std::pair<bool, Rank> weakness;
  for (auto slot = slots_.begin() + kOther + 1; slot != slots_.end(); ++slot) {
    if (!*slot || (*slot)->state != Target::State::live) {
      continue;
    }
    const DesiredTarget& other = (*slot)->wanted;
    const bool greedy =
        other.rank == Rank::loose && wanted.rank == Rank::loose && share_of(other.owner) > share_of(wanted.owner) + 1;
    if (other.rank <= wanted.rank && !greedy) {
      continue;
    }
    const bool idle = !observer.has_answered(**slot);
    if (other.rank <= wanted.rank && !idle) {
      continue;
    }
    if (weakest == nullptr || std::pair(idle, other.rank) >= weakness) {
      weakest = slot->get();
      weakness = {idle, other.rank};
    }
  }
  return weakest;
}

bool TargetTable::has_ended_ones() const {
  return std::any_of(slots_.begin() + kOther + 1, slots_.end(), [this](const auto& slot) {
    return slot && slot->state != Target::State::live && !successors_.contains(slot->ref.index);
  });
}

}  // namespace tacho::targets
