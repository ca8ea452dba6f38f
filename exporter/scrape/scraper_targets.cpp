#include <spdlog/spdlog.h>

#include <future>

#include "base/beside.h"
#include "scrape/kernel_clock.h"
#include "scrape/scraper.h"
#include "scrape/view.h"

// What follows when targets come and go.

namespace tacho::scrape {
namespace {

/// Indices with blocks that wait for a target.
constexpr std::size_t kPrepared = 4;

}  // namespace

Result<void> Scraper::add_to_probes(std::uint32_t index) {
  unflushed_ = true;
  for (std::size_t i = 0; i < state_.probes.size(); ++i) {
    if (auto added = state_.probes[i]->add_target(index); !added) {
      for (std::size_t done = 0; done < i; ++done) {
        state_.probes[done]->remove_target(index);
      }
      return std::unexpected(added.error().within("probe " + std::string(state_.probes[i]->info().name)));
    }
  }
  return {};
}

Result<void> Scraper::target_added(const targets::Target& target) {
  auto runtime = std::make_unique<TargetState>(window_);
  runtime->target = &target;
  runtime->id = target_id(target.wanted.labels);
  runtime->proto = {.labels = metrics::proto_labels(target.wanted.labels), .created = std::chrono::system_clock::now()};
  runtime->appeared.resize(state_.probes.size());
  build_series(*runtime);
  if (prepared_.erase(target.ref.index) == 0) {
    if (auto added = add_to_probes(target.ref.index); !added) {
      return added;
    }
  }
  // All counters begin at 0 now: what happens until the next sample is in the window, too.
  keep(*runtime, state_.sample(*runtime, false));
  state_.targets.at(target.ref.index) = std::move(runtime);
  return {};
}

void Scraper::target_removed(const targets::Target& target) {
  unflushed_ = true;
  for (const auto& probe : state_.probes) {
    probe->remove_target(target.ref.index);
  }
  state_.targets.at(target.ref.index).reset();
}

bool Scraper::has_answered(const targets::Target& target) const {
  const auto& runtime = state_.targets.at(target.ref.index);
  return runtime && !runtime->history.points(0).empty();
}

Result<void> Scraper::targets_changed() {
  if (!unflushed_) {
    return {};
  }
  // The kernel lets each of them wait for the same thing.
  std::vector<std::future<Result<void>>> waiting;
  waiting.reserve(state_.probes.size());
  for (const auto& probe : state_.probes) {
    waiting.push_back(begin_beside([&probe] { return probe->flush(); }));
  }
  Result<void> result;
  for (auto& future : waiting) {
    if (auto done = future.get(); !done) {
      result = done;
    }
  }
  unflushed_ = !result;
  return result;
}

bool Scraper::release_forgotten(targets::Time now) {
  bool released = false;
  {
    const std::lock_guard lock(mutex_);
    released = table_.release_ended(readers_.all_have_seen(now), now, *this);
  }
  if (released) {
    if (auto done = targets_changed(); !done) {
      spdlog::error("{}", done.error().message);
    }
  }
  return released;
}

void Scraper::prepare() {
  {
    const std::lock_guard lock(mutex_);
    const std::size_t before = prepared_.size();
    for (const std::uint32_t index : table_.vacant(kPrepared)) {
      if (!prepared_.contains(index) && prepared_.size() < kPrepared && add_to_probes(index)) {
        prepared_.insert(index);
      }
    }
    if (prepared_.size() == before) {
      return;
    }
  }
  if (auto done = targets_changed(); !done) {
    spdlog::error("{}", done.error().message);
  }
}

void Scraper::read_by(std::string_view reader) {
  readers_.scraped(reader, std::chrono::steady_clock::now());
}

}  // namespace tacho::scrape
