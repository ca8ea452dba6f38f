#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "scrape/scraper.h"

// What is done without, so that tacho costs no more than the limits.

namespace tacho::scrape {

std::optional<ShedLevel> Scraper::Kept::highest_shed() const {
  if (shed_at[TACHO_SHED_INTERVALS] == 0) {
    return {};
  }
  const std::int64_t since_ns = window.samples().front().time_ns;
  unsigned level = TACHO_SHED_LEVELS - 1;
  while (level > 0 && (shed_at.at(level) == 0 || shed_at.at(level) < since_ns)) {
    --level;
  }
  return static_cast<ShedLevel>(level);
}

void Scraper::shed(std::int64_t now_ns) {
  const std::int64_t elapsed_ns = now_ns - std::exchange(last_shed_ns_, now_ns);
  std::vector<Kept*> targets;
  std::vector<Shedding::Step> steps;
  for (const auto& kept : targets_) {
    if (kept) {
      targets.push_back(kept.get());
      steps.push_back({&kept->shed, kept->shed_input});
    }
  }
  std::vector<ShedNews> news;
  news.reserve(steps.size());
  for (const auto& [target, input] : steps) {
    news.push_back({.target = {}, .before = target->level(), .now = {}, .exhausted = target->exhausted()});
  }
  const auto cpus = static_cast<double>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  const auto changed =
      shedding_.run(steps, limits_, static_cast<std::uint64_t>(std::max<std::int64_t>(1, elapsed_ns)), cpus);
  for (const std::size_t i : changed) {
    const ShedLevel level = targets[i]->shed.level();
    const auto& accumulators = targets[i]->published->parts->accumulators;
    for (const auto& each : accumulators) {
      each->before_shed();
    }
    on_shed_(targets[i]->target->ref, level);
    for (const auto& each : accumulators) {
      each->after_shed(level);
    }
  }
  for (std::size_t i = 0; i < news.size(); ++i) {
    const Shed& now = targets[i]->shed;
    news[i].target = targets[i]->target->wanted.name;
    news[i].now = now.level();
    news[i].exhausted = now.exhausted() && !news[i].exhausted;
    for (unsigned level = 1; level <= now.level(); ++level) {
      targets[i]->shed_at.at(level) = now_ns;
    }
  }
  std::erase_if(news, [](const ShedNews& each) { return each.before == each.now && !each.exhausted; });
  if (!news.empty()) {
    spdlog::warn("{}", shed_line(news));
  }
}

}  // namespace tacho::scrape
