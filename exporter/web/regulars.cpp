#include "web/regulars.h"

#include <algorithm>

namespace tacho::web {

void Regulars::served(const std::string& source, Time now) {
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
