#include "base/liveness.h"

#include <algorithm>

namespace tacho {

Liveness::Task Liveness::begin(std::string what) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t id = next_++;
  entries_.emplace(id, Entry{.what = std::move(what), .step = {}, .since = now_()});
  return {*this, id};
}

Liveness::Task::~Task() {
  if (liveness_ != nullptr) {
    const std::lock_guard lock(liveness_->mutex_);
    liveness_->entries_.erase(id_);
  }
}

void Liveness::Task::now_at(std::string_view step) {
  const std::lock_guard lock(liveness_->mutex_);
  Entry& entry = liveness_->entries_.at(id_);
  entry.step = step;
  entry.since = liveness_->now_();
}

std::optional<Liveness::Stuck> Liveness::stuck() const {
  const std::lock_guard lock(mutex_);
  const auto oldest = std::ranges::min_element(entries_, {}, [](const auto& entry) { return entry.second.since; });
  if (oldest == entries_.end()) {
    return std::nullopt;
  }
  const Entry& entry = oldest->second;
  const auto time = now_() - entry.since;
  if (time < kPatience) {
    return std::nullopt;
  }
  return Stuck{.what = entry.what + (entry.step.empty() ? "" : " (" + entry.step + ")"), .time = time};
}

std::string Liveness::Stuck::text() const {
  return what + " is stuck for " + std::to_string(std::chrono::floor<std::chrono::seconds>(time).count()) + " s";
}

}  // namespace tacho
