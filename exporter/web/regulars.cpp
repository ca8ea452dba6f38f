#include "web/regulars.h"

#include <algorithm>
#include <string_view>

namespace tacho::web {

Regulars::Regulars(RegularsMemory* memory, Time now) : memory_(memory) {
  if (memory == nullptr) {
    return;
  }
  for (const RegularsMemory::Entry& entry : memory->entries) {
    const std::string_view whole(entry.source.data(), entry.source.size());
    const std::string_view source = whole.substr(0, whole.find('\0'));
    if (entry.visits > 0 && !source.empty() && source.size() < whole.size()) {
      const Time last{std::chrono::nanoseconds(entry.last_ns)};
      sources_.try_emplace(std::string(source), Visits{.last = std::clamp(last, now - 2 * kForget, now),
                                                       .count = std::min(entry.visits, kVisits)});
    }
  }
}

void Regulars::served(const std::string& source, Time now) {
  visit(source, now);
  if (memory_ != nullptr) {
    remember();
  }
}

/// A few kilobytes, after an answer of as many.
void Regulars::remember() {
  auto entry = memory_->entries.begin();
  for (const auto& [source, visits] : sources_) {
    entry->visits = 0;
    entry->source = {};
    source.copy(entry->source.data(), entry->source.size() - 1);
    entry->last_ns = std::chrono::nanoseconds(visits.last.time_since_epoch()).count();
    entry->visits = visits.count;
    ++entry;
  }
  for (; entry != memory_->entries.end(); ++entry) {
    entry->visits = 0;
  }
}

void Regulars::visit(const std::string& source, Time now) {
  const auto [at, is_new] = sources_.try_emplace(source, Visits{.last = now});
  if (!is_new) {
    Visits& visits = at->second;
    visits.count += visits.count < kVisits && now - visits.last >= kApart ? 1U : 0U;
    visits.last = visits.count < kVisits && now - visits.last < kApart ? visits.last : now;
    return;
  }
  if (sources_.size() <= kMost) {
    return;
  }
  std::erase_if(sources_, [now](const auto& each) { return now - each.second.last > kForget; });
  if (sources_.size() <= kMost) {
    return;
  }
  const auto least = std::ranges::min_element(sources_, [](const auto& one, const auto& other) {
    const bool one_stays = one.second.count >= kVisits;
    const bool other_stays = other.second.count >= kVisits;
    return one_stays != other_stays ? other_stays : one.second.last < other.second.last;
  });
  sources_.erase(least->second.count >= kVisits ? at : least);
}

}  // namespace tacho::web
