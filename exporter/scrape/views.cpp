#include "scrape/views.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "metrics/gain.h"
#include "scrape/kernel_clock.h"
#include "scrape/saturation.h"

namespace tacho::scrape {
namespace {

/// NaN if nothing can be said.
double saturation_of(const TargetState& runtime) {
  const auto estimate = saturation(runtime.window.samples());
  return estimate ? estimate->ratio : std::numeric_limits<double>::quiet_NaN();
}

TargetSummary summarize(const State& state, const TargetState& runtime) {
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
  probes::TargetSample now = state.sample(runtime, true);
  summary.sockets = std::move(now.socket).value_or(probes::SocketSample{});
  summary.polls = now.poll.value_or(probes::PollSample{});
  summary.conditions = holding(runtime.conditions());
  return summary;
}

double sort_value(const TargetState& runtime, SortKey key) {
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

TableRow row_of(const State& state, const TargetState& runtime) {
  return {.id = runtime.id,
          .summary = summarize(state, runtime),
          .recent = runtime.history.recent(),
          .last = runtime.history.last()};
}

const TargetState* find(const State& state, std::string_view id) {
  const auto found =
      std::ranges::find_if(state.targets, [id](const auto& runtime) { return shows(runtime) && runtime->id == id; });
  return found == state.targets.end() ? nullptr : found->get();
}

std::optional<WhyView::Target> explain(const TargetState& runtime, std::span<const probes::Dependency> dependencies) {
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

}  // namespace

std::vector<TargetSummary> summaries(const State& state) {
  std::vector<TargetSummary> all;
  for (const auto& runtime : state.targets) {
    if (shows(runtime)) {
      all.push_back(summarize(state, *runtime));
    }
  }
  return all;
}

TableView table_view(const State& state, const TableQuery& query) {
  TableView view;
  view.time = {state.instance, state.tick};
  view.lost = state.losses.lost + state.losses.skipped;
  for (const ObservedObject& object : state.objects) {
    view.unhooked += static_cast<std::size_t>(
        std::ranges::count_if(object.health.hooks, [](const kernel::HookState& hook) { return !hook.attached(); }));
  }
  view.unhooked += state.failed.size();
  std::vector<std::pair<double, const TargetState*>> order;
  for (const auto& runtime : state.targets) {
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
    view.rows.push_back(row_of(state, *order[i].second));
  }
  return view;
}

HistoryView history_view(const State& state, std::span<const std::string> ids, std::uint64_t since) {
  HistoryView view{.time = {state.instance, state.tick}, .targets = {}};
  for (const std::string& id : ids) {
    if (const TargetState* runtime = find(state, id)) {
      view.targets.push_back({id, runtime->history.points(since)});
    }
  }
  return view;
}

SlowView slow_view(const State& state, std::span<const std::string> ids) {
  SlowView view{.time = {state.instance, state.tick}, .now_ns = kernel_now_ns(), .targets = {}};
  for (const std::string& id : ids.first(std::min(ids.size(), SlowView::kMostTargets))) {
    const TargetState* runtime = find(state, id);
    if (runtime == nullptr) {
      continue;
    }
    const targets::Target& target = *runtime->target;
    SlowView::Target slow{.id = id, .name = target.wanted.name, .requests = {}};
    for (const auto& probe : state.probes) {
      std::ranges::move(probe->slowest(target.ref.index, view.now_ns), std::back_inserter(slow.requests));
    }
    view.targets.push_back(std::move(slow));
  }
  return view;
}

WhyView why_view(const State& state, std::span<const std::string> ids) {
  WhyView view{.time = {state.instance, state.tick}, .targets = {}};
  for (const std::string& id : ids.first(std::min(ids.size(), WhyView::kMostTargets))) {
    if (const TargetState* runtime = find(state, id)) {
      if (auto target = explain(*runtime, summarize(state, *runtime).sockets.dependencies)) {
        view.targets.push_back(std::move(*target));
      }
    }
  }
  return view;
}

std::optional<DetailView> detail_view(const State& state, std::string_view id, std::uint64_t since) {
  const TargetState* runtime = find(state, id);
  if (runtime == nullptr) {
    return std::nullopt;
  }
  DetailView view;
  view.time = {state.instance, state.tick};
  view.row = row_of(state, *runtime);
  view.recent_durations = runtime->history.recent_durations();
  const metrics::Gauges gauges = runtime->window.gauges();
  view.variance = gauges.variance;
  view.cv2 = gauges.cv2;
  if (const auto why = explain(*runtime, view.row.summary.sockets.dependencies)) {
    view.why = why->explanation.sentence;
  }
  view.points = runtime->history.points(since);
  view.columns = runtime->history.columns(since);
  for (const auto& [object, skipped] : state.objects) {
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
