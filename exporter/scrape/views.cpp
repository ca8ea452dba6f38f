#include "scrape/views.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "metrics/gain.h"
#include "scrape/kernel_clock.h"

namespace tacho::scrape {
namespace {

/// NaN if nothing can be said.
double saturation_of(const TargetState& target) {
  const auto& estimate = target.found.saturation;
  return estimate ? estimate->ratio : std::numeric_limits<double>::quiet_NaN();
}

/// What a target's history says.
template <class Use>
auto history_of(const TargetState& target, Use use) {
  return target.parts->past->look(
      [&use](const metrics::History& history, const WaitHistory*) { return std::invoke(use, history); });
}

TargetSummary summarize(const TargetState& target) {
  const targets::DesiredTarget& wanted = *target.wanted;
  const metrics::Gauges& gauges = target.found.gauges;
  TargetSummary summary;
  summary.name = wanted.name;
  summary.labels = wanted.labels;
  summary.identity = wanted.identity;
  summary.live = target.state == targets::Target::State::live;
  summary.cgroups = target.cgroups;
  summary.processes = target.processes;
  summary.request_rate = gauges.request_rate;
  summary.observed_rps = gauges.observed_rps;
  summary.poll_mean = gauges.poll_mean;
  summary.saturation = saturation_of(target);
  probes::TargetSample now = target.sample();
  summary.sockets = std::move(now.socket).value_or(probes::SocketSample{});
  summary.polls = now.poll.value_or(probes::PollSample{});
  summary.conditions = holding(target.found.conditions);
  summary.shed_level = target.found.shed_level.value_or(TACHO_SHED_NOTHING);
  return summary;
}

double sort_value(const TargetState& target, SortKey key) {
  const auto recent = [&target](double metrics::Reading::* value) {
    return history_of(target, [](const metrics::History& history) { return history.recent(); }).*value;
  };
  switch (key) {
    case SortKey::name:
      return 0;
    case SortKey::rate:
      return history_of(target, &metrics::History::recent_rate);
    case SortKey::p50:
      return recent(&metrics::Reading::p50);
    case SortKey::p99:
      return recent(&metrics::Reading::p99);
    case SortKey::saturation:
      return saturation_of(target);
    case SortKey::queue:
      return recent(&metrics::Reading::queue_share);
    case SortKey::idle:
      return recent(&metrics::Reading::idle_share);
    case SortKey::conditions:
      return static_cast<double>(holding(target.found.conditions).size());
  }
  return 0;
}

TableRow row_of(const TargetState& target) {
  TableRow row{.id = target.parts->id, .summary = summarize(target), .recent = {}, .last = {}};
  std::tie(row.recent, row.last) =
      history_of(target, [](const metrics::History& history) { return std::pair(history.recent(), history.last()); });
  return row;
}

const TargetState* find(const State& state, std::string_view id) {
  const auto found = std::ranges::find_if(
      state.targets, [id](const auto& target) { return target->shows() && target->parts->id == id; });
  return found == state.targets.end() ? nullptr : found->get();
}

std::optional<WhyView::Target> explain(const TargetState& target, std::span<const probes::Dependency> dependencies) {
  auto diagnosis = target.parts->past->look([](const metrics::History&, const WaitHistory* waits) {
    return waits != nullptr ? diagnose(*waits) : std::nullopt;
  });
  if (!diagnosis) {
    return {};
  }
  std::string_view peer;
  if (diagnosis->cause && diagnosis->cause->kind == Diagnosis::Cause::Kind::dependency) {
    const auto found = std::ranges::find(dependencies, diagnosis->cause->peer, &probes::Dependency::slot);
    peer = found == dependencies.end() ? std::string_view("other") : found->peer;
  }
  std::vector<std::string_view> doubts = holding(target.found.conditions);
  std::erase_if(doubts,
                [](std::string_view condition) { return !invalidates(condition, bottleneck_families().front().name); });
  const targets::DesiredTarget& wanted = *target.wanted;
  Explanation explanation = scrape::explain(*diagnosis, wanted.labels, peer, doubts);
  return WhyView::Target{.id = target.parts->id,
                         .name = wanted.name,
                         .diagnosis = std::move(*diagnosis),
                         .explanation = std::move(explanation)};
}

}  // namespace

std::vector<TargetSummary> summaries(const State& state) {
  std::vector<TargetSummary> all;
  for (const auto& target : state.targets) {
    if (target->shows()) {
      all.push_back(summarize(*target));
    }
  }
  return all;
}

TableView table_view(const State& state, const TableQuery& query) {
  TableView view;
  view.time = {state.instance, state.tick};
  view.lost = state.losses.lost + state.losses.skipped;
  for (const ObservedObject& object : *state.objects) {
    view.unhooked += static_cast<std::size_t>(
        std::ranges::count_if(object.health.hooks, [](const kernel::HookState& hook) { return !hook.attached(); }));
  }
  view.unhooked += state.failed.size();
  std::vector<std::pair<double, const TargetState*>> order;
  for (const auto& target : state.targets) {
    if (!target->shows()) {
      continue;
    }
    ++view.targets;
    view.rate += history_of(*target, &metrics::History::recent_rate);
    if (matches(*target->wanted, query.filter)) {
      order.emplace_back(sort_value(*target, query.sort), target.get());
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
                              const auto& left = a.second->wanted->labels;
                              const auto& right = b.second->wanted->labels;
                              return by_name && query.descending ? left > right : left < right;
                            });
  for (std::size_t i = begin; i < end; ++i) {
    view.rows.push_back(row_of(*order[i].second));
  }
  return view;
}

HistoryView history_view(const State& state, std::span<const std::string> ids, std::uint64_t since) {
  HistoryView view{.time = {state.instance, state.tick}, .targets = {}};
  for (const std::string& id : ids) {
    if (const TargetState* target = find(state, id)) {
      view.targets.push_back({id, history_of(*target, [&](const metrics::History& history) {
                                return history.points(since, state.tick);
                              })});
    }
  }
  return view;
}

SlowView slow_view(const State& state, std::span<const std::string> ids) {
  SlowView view{.time = {state.instance, state.tick}, .now_ns = kernel_now_ns(), .targets = {}};
  for (const std::string& id : ids.first(std::min(ids.size(), SlowView::kMostTargets))) {
    const TargetState* target = find(state, id);
    if (target == nullptr) {
      continue;
    }
    SlowView::Target slow{.id = id, .name = target->wanted->name, .requests = {}};
    for (const auto& each : target->parts->accumulators) {
      std::ranges::move(each->slowest(view.now_ns), std::back_inserter(slow.requests));
    }
    view.targets.push_back(std::move(slow));
  }
  return view;
}

WhyView why_view(const State& state, std::span<const std::string> ids) {
  WhyView view{.time = {state.instance, state.tick}, .targets = {}};
  for (const std::string& id : ids.first(std::min(ids.size(), WhyView::kMostTargets))) {
    if (const TargetState* target = find(state, id)) {
      if (auto why = explain(*target, summarize(*target).sockets.dependencies)) {
        view.targets.push_back(std::move(*why));
      }
    }
  }
  return view;
}

std::optional<DetailView> detail_view(const State& state, std::string_view id, std::uint64_t since) {
  const TargetState* target = find(state, id);
  if (target == nullptr) {
    return std::nullopt;
  }
  DetailView view;
  view.time = {state.instance, state.tick};
  view.row = row_of(*target);
  view.variance = target->found.gauges.variance;
  view.cv2 = target->found.gauges.cv2;
  if (const auto why = explain(*target, view.row.summary.sockets.dependencies)) {
    view.why = why->explanation.sentence;
  }
  target->parts->past->look([&](const metrics::History& history, const WaitHistory*) {
    view.recent_durations = history.recent_durations();
    view.points = history.points(since, state.tick);
    view.columns = history.columns(since, state.tick);
  });
  for (const auto& [object, skipped] : *state.objects) {
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
