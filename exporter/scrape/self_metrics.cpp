#include "scrape/self_metrics.h"

#include <linux/capability.h>

#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/version.h"
#include "bpf/lib/loss.h"

namespace tacho::scrape {
namespace {

constexpr std::array<std::string_view, TACHO_LOSS_REASONS> kReasons{"socket_state", "task_state",   "ring_full",
                                                                    "map_full",     "stale_target", "peer_overflow",
                                                                    "http2_step",   "http2_stream"};

void add_hooks(const kernel::ObjectHealth& object, prometheus::MetricFamily& family) {
  for (const kernel::HookState& hook : object.hooks) {
    add_sample(
        family,
        {{"probe", std::string(object.name)}, {"hook", std::string(hook.hook)}, {"method", std::string(hook.method)}},
        hook.attached() ? 1 : 0);
  }
}

}  // namespace

prometheus::MetricFamily empty_family(SelfName name) {
  prometheus::MetricFamily family;
  family.name = name.family.name;
  family.help = name.family.help;
  family.type =
      name.family.type == metrics::Type::counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  return family;
}

void add_sample(prometheus::MetricFamily& family, LabelPairs labels, double value) {
  prometheus::ClientMetric metric;
  for (auto& [name, text] : labels) {
    metric.label.push_back({std::move(name), std::move(text)});
  }
  if (family.type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
}

prometheus::MetricFamily single(SelfName name, double value) {
  prometheus::MetricFamily family = empty_family(name);
  add_sample(family, {}, value);
  return family;
}

std::vector<std::pair<std::string_view, std::uint64_t>> losses(const kernel::ObjectHealth& object) {
  std::vector<std::pair<std::string_view, std::uint64_t>> list;
  for (std::size_t i = 0; i < std::min(kReasons.size(), object.lost.size()); ++i) {
    list.emplace_back(kReasons[i], object.lost[i]);
  }
  return list;
}

std::uint64_t lost_events(const kernel::ObjectHealth& object) {
  std::uint64_t sum = 0;
  for (const auto& [reason, events] : losses(object)) {
    // A peer beyond max_peers is counted as another: nothing is lost.
    sum += reason == kReasons[TACHO_LOST_PEER_OVERFLOW] ? 0 : events;
  }
  return sum;
}

std::vector<prometheus::MetricFamily> object_metrics(std::span<const ObservedObject> objects,
                                                     std::span<const std::string> failed, bool run_statistics) {
  auto attached = empty_family("tacho_probe_attached");
  auto run_seconds = empty_family("tacho_probe_run_seconds_total");
  auto runs = empty_family("tacho_probe_runs_total");
  auto misses = empty_family("tacho_probe_misses_total");
  auto lost = empty_family("tacho_lost_events_total");
  auto entries = empty_family("tacho_map_entries");
  auto max_entries = empty_family("tacho_map_max_entries");
  for (const std::string& probe : failed) {
    add_sample(attached, {{"probe", probe}, {"hook", "all"}, {"method", "none"}}, 0);
  }
  for (const auto& [object, skipped] : objects) {
    const std::string probe(object.name);
    add_hooks(object, attached);
    for (const kernel::ProgramStatistics& program : object.programs) {
      const LabelPairs labels{{"probe", probe}, {"program", program.program}};
      add_sample(misses, labels, static_cast<double>(program.misses));
      if (run_statistics) {
        add_sample(run_seconds, labels, static_cast<double>(program.run_ns) * 1e-9);
        add_sample(runs, labels, static_cast<double>(program.runs));
      }
    }
    for (const auto& [reason, events] : losses(object)) {
      add_sample(lost, {{"probe", probe}, {"reason", std::string(reason)}}, static_cast<double>(events));
    }
    add_sample(lost, {{"probe", probe}, {"reason", "skipped"}}, static_cast<double>(skipped));
    for (const kernel::MapFill& fill : object.maps) {
      const LabelPairs labels{{"probe", probe}, {"map", fill.map}};
      add_sample(entries, labels, static_cast<double>(fill.entries));
      add_sample(max_entries, labels, static_cast<double>(fill.max_entries));
    }
  }
  return {attached, run_seconds, runs, misses, lost, entries, max_entries};
}

std::vector<prometheus::MetricFamily> target_metrics(std::span<const targets::DesiredTarget* const> reported,
                                                     const TableNumbers& numbers) {
  auto info = empty_family("tacho_target_info");
  for (const targets::DesiredTarget* target : reported) {
    const targets::CgroupIdentity& identity = target->identity;
    LabelPairs labels = target->labels;
    // What is known, and no property of the target already.
    const auto add = [&labels](std::string name, const std::string& value) {
      if (value.empty()) {
        return;
      }
      for (const auto& [known, text] : labels) {
        if (known == name) {
          return;
        }
      }
      labels.emplace_back(std::move(name), value);
    };
    add("cgroup", identity.path);
    add("container_id", identity.container_id);
    add("runtime", identity.runtime);
    add("pod_uid", identity.pod_uid);
    add("unit", identity.unit);
    add("user", identity.user);
    add("machine", identity.machine);
    add("image", target->container.image);
    add("compose_project", target->container.compose_project);
    add("compose_service", target->container.compose_service);
    add("workload", target->workload.name);
    add("workload_kind", target->workload.kind);
    add("node", target->node);
    add_sample(info, std::move(labels), 1);
  }
  const targets::TargetTable::Shortfalls& shortfalls = numbers.shortfalls;
  auto errors = empty_family("tacho_discovery_errors_total");
  for (const auto& [subject, count] :
       {std::pair("cgroups", shortfalls.cgroups), std::pair("processes", shortfalls.processes),
        std::pair("listeners", shortfalls.listeners)}) {
    add_sample(errors, {{"subject", subject}}, static_cast<double>(count));
  }
  return {single("tacho_targets", static_cast<double>(numbers.live)),
          single("tacho_targets_overflowed_total", static_cast<double>(numbers.overflowed)),
          single("tacho_targets_failed_total", static_cast<double>(shortfalls.failed)),
          single("tacho_target_members_refused_total", static_cast<double>(shortfalls.refused)),
          errors,
          info};
}

std::vector<prometheus::MetricFamily> collector_metrics(std::span<const CollectorResult> results) {
  auto duration = empty_family("tacho_scrape_collector_duration_seconds");
  auto success = empty_family("tacho_scrape_collector_success");
  for (const CollectorResult& result : results) {
    const LabelPairs labels{{"collector", std::string(result.collector)}};
    add_sample(duration, labels, result.seconds);
    add_sample(success, labels, result.success ? 1 : 0);
  }
  return {duration, success};
}

std::vector<prometheus::MetricFamily> web_metrics(const WebCounters& counters) {
  auto lost = empty_family("tacho_web_connections_lost_total");
  for (const auto& [reason, count] : counters.lost) {
    add_sample(lost, {{"reason", reason}}, static_cast<double>(count));
  }
  return {single("tacho_web_connections", static_cast<double>(counters.open)),
          single("tacho_web_connections_accepted_total", static_cast<double>(counters.accepted)), lost,
          single("tacho_web_process_starts_total", static_cast<double>(counters.starts))};
}

std::vector<prometheus::MetricFamily> rights_metrics(std::span<const process::Rights> processes) {
  constexpr process::CapabilitySet kAlways = process::capability_bit(CAP_BPF) | process::capability_bit(CAP_PERFMON);
  auto family = empty_family("tacho_process_capabilities");
  for (const process::Rights& rights : processes) {
    for (unsigned number = 0; number < 64; ++number) {
      const process::CapabilitySet bit = process::capability_bit(number);
      if (((rights.capabilities | kAlways) & bit) != 0) {
        add_sample(family, {{"process", rights.process}, {"capability", process::capability_name(number)}},
                   (rights.capabilities & bit) != 0 ? 1 : 0);
      }
    }
  }
  return {family};
}

std::vector<prometheus::MetricFamily> program_metrics(const ReloadState& reload, std::uint64_t dropped_elsewhere) {
  auto build = empty_family("tacho_build_info");
  add_sample(build, {{"version", std::string(version())}, {"compiler", __VERSION__}}, 1);
  return {build, single("tacho_config_last_reload_successful", reload.successful ? 1 : 0),
          single("tacho_config_last_reload_success_timestamp_seconds", reload.success_time),
          single("tacho_log_dropped_lines_total", static_cast<double>(dropped_log_lines() + dropped_elsewhere))};
}

}  // namespace tacho::scrape
