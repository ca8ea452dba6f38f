// What people look at: the table of targets, their last minutes, one target. Everything here is read under the mutex,
// and costs what is shown: a table of a thousand targets is sorted by numbers that the sampler left behind, and only
// the rows that are asked for are read from the kernel's blocks.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "metrics/gain.h"
#include "scrape/kernel_clock.h"
#include "scrape/scraper.h"

namespace tacho::scrape {

double Scraper::saturation_of(const Runtime& runtime) {
  const auto estimate = saturation(runtime.window.samples());
  return estimate ? estimate->ratio : std::numeric_limits<double>::quiet_NaN();
}

TargetSummary Scraper::summarize(const Runtime& runtime) const {
  const targets::DesiredTarget& wanted = runtime.target->wanted;
  const metrics::Gauges gauges = runtime.window.gauges();
  TargetSummary summary;
  summary.name = wanted.name;
  summary.labels = wanted.labels;
  summary.identity = wanted.identity;
  summary.live = runtime.target->state == targets::Target::State::live;
  summary.cgroups = wanted.cgroups.size();
  summary.processes = wanted.processes.size();
  summary.request_rate = gauges.request_rate;
  summary.observed_rps = gauges.observed_rps;
  summary.poll_mean = gauges.poll_mean;
  summary.saturation = saturation_of(runtime);
  probes::TargetSample now = sample(runtime, true);
  summary.sockets = std::move(now.socket).value_or(probes::SocketSample{});
  summary.polls = now.poll.value_or(probes::PollSample{});
  summary.conditions = holding(runtime.conditions());
  return summary;
}

std::vector<TargetSummary> Scraper::summaries() {
  const std::lock_guard lock(mutex_);
  std::vector<TargetSummary> all;
  for (const auto& runtime : runtimes_) {
    if (shows(runtime)) {
      all.push_back(summarize(*runtime));
    }
  }
  return all;
}

double Scraper::sort_value(const Runtime& runtime, SortKey key) {
  switch (key) {
    case SortKey::name:
      return 0;
    case SortKey::rate:
      return runtime.history.recent_rate();
    case SortKey::p50:
      return runtime.history.recent().p50;
    case SortKey::p99:
      return runtime.history.recent().p99;
    case SortKey::saturation:
      return saturation_of(runtime);
    case SortKey::queue:
      return runtime.history.recent().queue_share;
    case SortKey::idle:
      return runtime.history.recent().idle_share;
    case SortKey::conditions:
      return static_cast<double>(holding(runtime.conditions()).size());
  }
  return 0;
}

TableRow Scraper::row(const Runtime& runtime) const {
  return {.id = runtime.id,
          .summary = summarize(runtime),
          .recent = runtime.history.recent(),
          .last = runtime.history.last()};
}

TableView Scraper::table(const TableQuery& query) {
  const std::lock_guard lock(mutex_);
  TableView view;
  view.time = {instance_, tick_};
  view.lost = losses_.lost + losses_.skipped;
  for (const ObservedObject& object : objects_) {
    view.unhooked += static_cast<std::size_t>(
        std::ranges::count_if(object.health.hooks, [](const kernel::HookState& hook) { return !hook.attached(); }));
  }
  view.unhooked += failed_.size();
  std::vector<std::pair<double, const Runtime*>> order;
  for (const auto& runtime : runtimes_) {
    if (!shows(runtime)) {
      continue;
    }
    ++view.targets;
    view.rate += runtime->history.recent_rate();
    if (matches(runtime->target->wanted, query.filter)) {
      order.emplace_back(sort_value(*runtime, query.sort), runtime.get());
    }
  }
  view.matched = order.size();
  const std::size_t begin = std::min(query.offset, order.size());
  const std::size_t end = begin + std::min(query.limit, order.size() - begin);
  const bool by_name = query.sort == SortKey::name;
  std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(end),
                            [&query, by_name](const auto& a, const auto& b) {
                              if (std::isnan(a.first) != std::isnan(b.first)) {
                                return std::isnan(b.first);
                              }
                              if (!std::isnan(a.first) && a.first != b.first) {
                                return query.descending ? a.first > b.first : a.first < b.first;
                              }
                              const auto& left = a.second->target->wanted.labels;
                              const auto& right = b.second->target->wanted.labels;
                              return by_name && query.descending ? left > right : left < right;
                            });
  for (std::size_t i = begin; i < end; ++i) {
    view.rows.push_back(row(*order[i].second));
  }
  return view;
}

const Scraper::Runtime* Scraper::find(std::string_view id) const {
  const auto found =
      std::ranges::find_if(runtimes_, [id](const auto& runtime) { return shows(runtime) && runtime->id == id; });
  return found == runtimes_.end() ? nullptr : found->get();
}

HistoryView Scraper::history(std::span<const std::string> ids, std::uint64_t since) {
  const std::lock_guard lock(mutex_);
  HistoryView view{.time = {instance_, tick_}, .targets = {}};
  for (const std::string& id : ids) {
    if (const Runtime* runtime = find(id)) {
      view.targets.push_back({id, runtime->history.points(since)});
    }
  }
  return view;
}

SlowView Scraper::slowest(std::span<const std::string> ids) {
  const std::lock_guard lock(mutex_);
  SlowView view{.time = {instance_, tick_}, .now_ns = kernel_now_ns(), .targets = {}};
  for (const std::string& id : ids.first(std::min(ids.size(), SlowView::kMostTargets))) {
    const Runtime* runtime = find(id);
    if (runtime == nullptr) {
      continue;
    }
    const targets::Target& target = *runtime->target;
    SlowView::Target slow{.id = id, .name = target.wanted.name, .requests = {}};
    for (const auto& probe : probes_) {
      std::ranges::move(probe->slowest(target.ref.index, view.now_ns), std::back_inserter(slow.requests));
    }
    view.targets.push_back(std::move(slow));
  }
  return view;
}

std::optional<WhyView::Target> Scraper::explain(const Runtime& runtime,
                                                std::span<const probes::Dependency> dependencies) const {
  auto diagnosis = runtime.waits ? diagnose(*runtime.waits) : std::nullopt;
  if (!diagnosis) {
    return {};
  }
  std::string_view peer;
  if (diagnosis->cause && diagnosis->cause->kind == Diagnosis::Cause::Kind::dependency) {
    const auto found = std::ranges::find(dependencies, diagnosis->cause->peer, &probes::Dependency::slot);
    peer = found == dependencies.end() ? std::string_view("other") : found->peer;
  }
  std::vector<std::string_view> doubts = holding(runtime.conditions());
  std::erase_if(doubts,
                [](std::string_view condition) { return !invalidates(condition, bottleneck_families().front().name); });
  const targets::DesiredTarget& wanted = runtime.target->wanted;
  Explanation explanation = scrape::explain(*diagnosis, wanted.labels, peer, doubts);
  return WhyView::Target{
      .id = runtime.id, .name = wanted.name, .diagnosis = std::move(*diagnosis), .explanation = std::move(explanation)};
}

WhyView Scraper::why(std::span<const std::string> ids) {
  const std::lock_guard lock(mutex_);
  WhyView view{.time = {instance_, tick_}, .targets = {}};
  for (const std::string& id : ids.first(std::min(ids.size(), WhyView::kMostTargets))) {
    if (const Runtime* runtime = find(id)) {
      if (auto target = explain(*runtime, summarize(*runtime).sockets.dependencies)) {
        view.targets.push_back(std::move(*target));
      }
    }
  }
  return view;
}

std::optional<DetailView> Scraper::detail(std::string_view id, std::uint64_t since) {
  const std::lock_guard lock(mutex_);
  const Runtime* runtime = find(id);
  if (runtime == nullptr) {
    return std::nullopt;
  }
  DetailView view;
  view.time = {instance_, tick_};
  view.row = row(*runtime);
  view.recent_durations = runtime->history.recent_durations();
  const metrics::Gauges gauges = runtime->window.gauges();
  view.variance = gauges.variance;
  view.cv2 = gauges.cv2;
  if (const auto why = explain(*runtime, view.row.summary.sockets.dependencies)) {
    view.why = why->explanation.sentence;
  }
  view.points = runtime->history.points(since);
  view.columns = runtime->history.columns(since);
  for (const auto& [object, skipped] : objects_) {
    for (const kernel::HookState& hook : object.hooks) {
      view.hooks.push_back({object.name, hook});
    }
    for (const auto& [reason, events] : losses(object)) {
      view.losses.push_back({object.name, reason, events});
    }
    view.losses.push_back({object.name, "skipped", skipped});
  }
  return view;
}

}  // namespace tacho::scrape
