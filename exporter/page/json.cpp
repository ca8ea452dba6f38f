#include "page/json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "metrics/buckets.h"
#include "page/json_parts.h"

namespace tacho::page {
namespace {

using nlohmann::json;

json numbers(const std::vector<metrics::Reading>& points, double metrics::Reading::* quantity) {
  json list = json::array();
  for (const metrics::Reading& point : points) {
    list.push_back(number(point.*quantity));
  }
  return list;
}

json reading_json(const metrics::Reading& reading) {
  return {{"rate", number(reading.rate)},
          {"p50", number(reading.p50)},
          {"p99", number(reading.p99)},
          {"queue_share", number(reading.queue_share)},
          {"idle_share", number(reading.idle_share)}};
}

/// Pairs of a slot's upper bound in seconds, null for the last one, and its count.
json histogram_json(const metrics::FineHistogram& histogram) {
  json list = json::array();
  for (std::size_t slot = 0; slot < histogram.slots.size(); ++slot) {
    if (histogram.slots.at(slot) > 0) {
      list.push_back(
          {number(metrics::slot_bound_seconds(slot, metrics::FineHistogram::kPerOctave)), histogram.slots.at(slot)});
    }
  }
  return list;
}

json dependencies_json(std::vector<probes::Dependency> dependencies, std::size_t limit) {
  std::ranges::sort(dependencies, [](const auto& a, const auto& b) {
    const auto calls = metrics::total(a.duration);
    const auto others = metrics::total(b.duration);
    return calls != others ? calls > others : a.peer < b.peer;
  });
  json list = json::array();
  for (const probes::Dependency& dependency : dependencies) {
    if (list.size() == limit) {
      break;
    }
    list.push_back({{"peer", dependency.peer},
                    {"calls", metrics::total(dependency.duration)},
                    {"p50", number(metrics::quantile(dependency.duration, 0.5))},
                    {"p99", number(metrics::quantile(dependency.duration, 0.99))}});
  }
  return list;
}

/// @param peers how many dependencies to list
json row_json(const scrape::TableRow& row, std::size_t peers) {
  const scrape::TargetSummary& summary = row.summary;
  json labels = json::object();
  for (const auto& [name, value] : summary.labels) {
    if (name != "target") {
      labels[name] = value;
    }
  }
  json result = reading_json(row.recent);
  result.update({{"id", row.id},
                 {"target", summary.name},
                 {"labels", std::move(labels)},
                 {"live", summary.live},
                 {"last_rate", number(row.last.rate)},
                 {"saturation", number(summary.saturation)},
                 {"in_flight", summary.sockets.knows_in_flight ? json(summary.sockets.in_flight) : json()},
                 {"connections", summary.sockets.knows_connections ? json(summary.sockets.server_connections) : json()},
                 {"conditions", summary.conditions},
                 {"shed_level", summary.shed_level},
                 {"dependencies", dependencies_json(summary.sockets.dependencies, peers)},
                 {"peers", summary.sockets.dependencies.size()}});
  return result;
}

json heat_json(const std::vector<metrics::HeatColumn>& columns) {
  json list = json::array();
  for (const metrics::HeatColumn& column : columns) {
    list.push_back(column);
  }
  return list;
}

json request_json(const probes::SlowRequest& request, std::int64_t now_ns) {
  constexpr double kNanosecond = 1e-9;
  std::array<double, TACHO_PARTS> seconds{};
  std::ranges::transform(request.parts_ns, seconds.begin(),
                         [](std::uint64_t ns) { return static_cast<double>(ns) * kNanosecond; });
  json result = {{"age", number(static_cast<double>(now_ns - request.ended_ns) * kNanosecond)},
                 {"duration", number(static_cast<double>(request.duration_ns) * kNanosecond)},
                 {"parts", parts_json(seconds)},
                 {"mode", request.mode},
                 {"client", request.client},
                 {"thread", request.thread},
                 {"thread_name", request.thread_name},
                 {"bytes", request.bytes},
                 {"reply_bytes", request.reply_bytes}};
  if (request.calls > 0) {
    result["calls"] = {{"count", request.calls},
                       {"seconds", number(static_cast<double>(request.calls_ns) * kNanosecond)},
                       {"longest", number(static_cast<double>(request.longest_call_ns) * kNanosecond)},
                       {"longest_peer", request.longest_call_peer}};
  }
  return result;
}

}  // namespace

std::string table_json(const scrape::TableView& view, const std::vector<std::string>& absent) {
  constexpr std::size_t kPeersInTable = 3;
  json document = time_json(view.time);
  document.update({{"targets", view.targets},
                   {"matched", view.matched},
                   {"rate", number(view.rate)},
                   {"lost_events", view.lost},
                   {"unattached_hooks", view.unhooked},
                   {"recent_seconds", metrics::History::kRecent},
                   {"absent", absent},
                   {"rows", json::array()}});
  for (const scrape::TableRow& row : view.rows) {
    document["rows"].push_back(row_json(row, kPeersInTable));
  }
  return text(document);
}

std::string history_json(const scrape::HistoryView& view) {
  json document = time_json(view.time);
  document["rates"] = json::object();
  for (const scrape::TargetHistory& target : view.targets) {
    document["rates"][target.id] = numbers(target.points, &metrics::Reading::rate);
  }
  return text(document);
}

std::string slow_json(const scrape::SlowView& view) {
  json document = time_json(view.time);
  document["kept_per_minute"] = probes::SlowRequests::kKept;
  document["minutes"] = probes::SlowRequests::kMinutes;
  document["targets"] = json::array();
  for (const scrape::SlowView::Target& target : view.targets) {
    json requests = json::array();
    for (const probes::SlowRequest& request : target.requests) {
      requests.push_back(request_json(request, view.now_ns));
    }
    document["targets"].push_back({{"id", target.id}, {"target", target.name}, {"requests", std::move(requests)}});
  }
  return text(document);
}

std::string detail_json(const scrape::DetailView& view) {
  const scrape::TargetSummary& summary = view.row.summary;
  json document = time_json(view.time);
  document["target"] = row_json(view.row, summary.sockets.dependencies.size());
  document["identity"] = {{"cgroup", summary.identity.path},     {"container_id", summary.identity.container_id},
                          {"runtime", summary.identity.runtime}, {"unit", summary.identity.unit},
                          {"cgroups", summary.cgroups},          {"processes", summary.processes}};
  document["why"] = view.why;
  document["requests"] = metrics::total(summary.sockets.duration);
  document["sends_per_second"] = number(summary.observed_rps);
  document["poll"] = {{"mean_seconds", number(summary.poll_mean)},
                      {"waiters", summary.polls.waiters},
                      {"threads", summary.polls.threads}};
  document["intervals"] = json::object();
  for (std::size_t direction = 0; direction < view.variance.size(); ++direction) {
    document["intervals"][direction == 0 ? "send" : "receive"] = {{"variance", number(view.variance.at(direction))},
                                                                  {"cv2", number(view.cv2.at(direction))}};
  }
  document["recent_durations"] = histogram_json(view.recent_durations);
  document["points"] = {{"rate", numbers(view.points, &metrics::Reading::rate)},
                        {"p50", numbers(view.points, &metrics::Reading::p50)},
                        {"p99", numbers(view.points, &metrics::Reading::p99)},
                        {"queue_share", numbers(view.points, &metrics::Reading::queue_share)},
                        {"idle_share", numbers(view.points, &metrics::Reading::idle_share)}};
  document["heat"] = {{"column_seconds", metrics::History::kColumnTicks},
                      {"bounds", json::array()},
                      {"columns", heat_json(view.columns)}};
  for (std::size_t row = 0; row < metrics::kHeatRows; ++row) {
    document["heat"]["bounds"].push_back(number(metrics::slot_bound_seconds(row, 1)));
  }
  document["hooks"] = json::array();
  for (const auto& [probe, hook] : view.hooks) {
    document["hooks"].push_back({{"probe", probe},
                                 {"hook", hook.hook},
                                 {"method", hook.method},
                                 {"attached", hook.attached()},
                                 {"error", hook.error}});
  }
  document["losses"] = json::array();
  for (const scrape::DetailView::Loss& loss : view.losses) {
    document["losses"].push_back({{"probe", loss.probe}, {"reason", loss.reason}, {"events", loss.events}});
  }
  return text(document);
}

}  // namespace tacho::page
