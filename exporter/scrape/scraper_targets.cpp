#include <spdlog/spdlog.h>

#include <algorithm>
#include <future>
#include <span>

#include "base/beside.h"
#include "scrape/kernel_clock.h"
#include "scrape/scraper.h"
#include "scrape/view.h"

// What follows when targets come and go.

namespace tacho::scrape {
namespace {

/// Indices with blocks that wait for a target.
constexpr std::size_t kPrepared = 4;

/// Whether what is exported and shown of them is the same, members apart.
bool is_described_alike(const targets::DesiredTarget& a, const targets::DesiredTarget& b) {
  return a.name == b.name && a.labels == b.labels && a.identity == b.identity && a.container == b.container &&
         a.workload == b.workload && a.node == b.node;
}

/// What the table says of a target that is not what was published; nullptr: nothing.
std::shared_ptr<const TargetState> news_of(const targets::Target& target, const TargetState& published) {
  const targets::DesiredTarget& wanted = target.wanted;
  const bool described = published.wanted && is_described_alike(*published.wanted, wanted);
  if (described && published.state == target.state && published.counts == target.counts &&
      published.cgroups == wanted.cgroups.size() && published.processes == wanted.processes.size()) {
    return nullptr;
  }
  auto now = std::make_shared<TargetState>(published);
  now->state = target.state;
  now->counts = target.counts;
  now->cgroups = wanted.cgroups.size();
  now->processes = wanted.processes.size();
  if (!described) {
    auto description = std::make_shared<targets::DesiredTarget>(wanted);
    description->cgroups.clear();
    description->processes.clear();
    now->wanted = std::move(description);
  }
  return now;
}

/// In the place of what a probe had no memory for: the others watch the target.
class Unwatched final : public probes::Accumulators {
 public:
  void sample(const probes::Look& /*look*/, probes::TargetSample& /*sample*/) override {}
  void read(const probes::Look& /*look*/, const metrics::Gauges& /*gauges*/, metrics::Row& /*row*/) override {}
};

}  // namespace

Scraper::Additions Scraper::add_to_probes(std::uint32_t index) {
  unflushed_ = true;
  Additions all;
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    auto added = probes_[i]->add_target(index);
    if (added) {
      all.accumulators.push_back(std::move(*added));
    } else {
      all.accumulators.push_back(std::make_shared<Unwatched>());
      all.lacking.push_back(i);
      all.error = added.error().within("probe " + std::string(probes_[i]->info().name));
    }
  }
  return all;
}

/// Where sockets are not watched, each operation of the members would be a lost one.
bool Scraper::is_pointless(std::span<const std::size_t> lacking) const {
  return (!probes_.empty() && lacking.size() == probes_.size()) ||
         std::ranges::any_of(lacking, [this](std::size_t i) { return probes_[i]->info().name == "socket"; });
}

void Scraper::remove_from_probes(std::uint32_t index, std::span<const std::size_t> lacking) {
  unflushed_ = true;
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    if (std::ranges::find(lacking, i) == lacking.end()) {
      probes_[i]->remove_target(index);
    }
  }
}

Scraper::Retried Scraper::add_to_lacking_probes() {
  Retried result;
  for (const auto& kept : targets_) {
    if (!kept || kept->lacking.empty()) {
      continue;
    }
    const std::uint32_t index = kept->target->ref.index;
    auto accumulators = kept->published->parts->accumulators;
    std::erase_if(kept->lacking, [&](std::size_t i) {
      auto added = probes_[i]->add_target(index);
      if (!added) {
        result.still_lacking = std::unexpected(added.error()
                                                   .within("probe " + std::string(probes_[i]->info().name))
                                                   .within("target " + kept->target->wanted.name));
        return false;
      }
      unflushed_ = true;
      result.any = true;
      accumulators[i] = std::move(*added);
      return true;
    });
    if (accumulators != kept->published->parts->accumulators) {
      auto now = std::make_shared<TargetState>(*kept->published);
      now->parts = std::make_shared<const TargetParts>(now->parts->id, std::move(accumulators), now->parts->past);
      kept->published = std::move(now);
    }
  }
  return result;
}

Result<void> Scraper::target_added(const targets::Target& target) {
  const std::uint32_t index = target.ref.index;
  Additions added;
  if (auto prepared = prepared_.extract(index)) {
    added.accumulators = std::move(prepared.mapped());
  } else if (added = add_to_probes(index); is_pointless(added.lacking)) {
    remove_from_probes(index, added.lacking);
    return std::unexpected(added.error);
  }
  auto past = std::make_shared<Past>(style_->window);
  TargetState state;
  state.index = index;
  state.epoch = target.ref.epoch;
  state.parts =
      std::make_shared<const TargetParts>(target_id(target.wanted.labels), std::move(added.accumulators), past);
  state.lines = lines_of(target, std::chrono::system_clock::now());
  auto kept =
      std::make_unique<Kept>(&target, std::move(past), metrics::Window(style_->window), 0, news_of(target, state));
  kept->lacking = std::move(added.lacking);
  // All counters begin at 0 now: what happens until the next sample is in the window, too.
  sample(*kept);
  find(*kept);
  targets_.at(index) = std::move(kept);
  return {};
}

void Scraper::target_removed(const targets::Target& target) {
  auto& kept = targets_.at(target.ref.index);
  remove_from_probes(target.ref.index,
                     kept ? std::span<const std::size_t>(kept->lacking) : std::span<const std::size_t>());
  kept.reset();
}

bool Scraper::has_answered(const targets::Target& target) const {
  const auto& kept = targets_.at(target.ref.index);
  return kept && !kept->past->history().empty();
}

bool Scraper::follow_table() {
  bool changed = false;
  for (const auto& kept : targets_) {
    if (auto now = kept ? news_of(*kept->target, *kept->published) : nullptr) {
      kept->published = std::move(now);
      changed = true;
    }
  }
  return changed;
}

void Scraper::targets_known() {
  follow_table();
  publish();
}

Result<void> Scraper::targets_changed() {
  auto [any_more, result] = add_to_lacking_probes();
  if (!unflushed_) {
    return result;
  }
  // The kernel lets each of them wait for the same thing.
  std::vector<std::future<Result<void>>> waiting;
  waiting.reserve(probes_.size());
  for (const auto& probe : probes_) {
    waiting.push_back(begin_beside([&probe] { return probe->flush(); }));
  }
  unflushed_ = false;
  for (auto& future : waiting) {
    if (auto done = future.get(); !done) {
      result = done;
      unflushed_ = true;
    }
  }
  adopt_more_ = adopt_more_ || any_more;
  if (adopt_more_ && !unflushed_) {
    adopt_more_ = false;
    look_after(probes::Occasion::targets_added);  // their members have been known for a while
  }
  return result;
}

bool Scraper::release_forgotten(targets::Time now) {
  const bool released = table_.release_ended(readers_.all_have_seen(now), now, *this);
  if (follow_table() || released) {
    publish();
  }
  if (released) {
    if (auto done = targets_changed(); !done) {
      spdlog::error("{}", done.error().message);
    }
  }
  return released;
}

void Scraper::prepare() {
  const std::size_t before = prepared_.size();
  for (const std::uint32_t index : table_.vacant(kPrepared)) {
    if (prepared_.contains(index) || prepared_.size() >= kPrepared) {
      continue;
    }
    if (auto added = add_to_probes(index); added.lacking.empty()) {
      prepared_.emplace(index, std::move(added.accumulators));
    } else {
      remove_from_probes(index, added.lacking);
    }
  }
  if (prepared_.size() == before) {
    return;
  }
  if (auto done = targets_changed(); !done) {
    spdlog::error("{}", done.error().message);
  }
}

void Scraper::read_by(std::string_view reader) {
  readers_.scraped(reader, std::chrono::steady_clock::now());
}

}  // namespace tacho::scrape
