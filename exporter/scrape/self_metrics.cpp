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

void add_hooks(const kernel::ObjectHealth& object, SelfFamily& family) {
  for (const kernel::HookState& hook : object.hooks) {
    family.add(
        {{"probe", std::string(object.name)}, {"hook", std::string(hook.hook)}, {"method", std::string(hook.method)}},
        hook.attached() ? 1 : 0);
  }
}

}  // namespace

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

std::vector<SelfFamily> object_metrics(std::span<const ObservedObject> objects, std::span<const std::string> failed,
                                       bool run_statistics) {
  SelfFamily attached("tacho_probe_attached");
  SelfFamily run_seconds("tacho_probe_run_seconds_total");
  SelfFamily runs("tacho_probe_runs_total");
  SelfFamily misses("tacho_probe_misses_total");
  SelfFamily lost("tacho_lost_events_total");
  SelfFamily entries("tacho_map_entries");
  SelfFamily max_entries("tacho_map_max_entries");
  for (const std::string& probe : failed) {
    attached.add({{"probe", probe}, {"hook", "all"}, {"method", "none"}}, 0);
  }
  for (const auto& [object, skipped] : objects) {
    const std::string probe(object.name);
    add_hooks(object, attached);
    for (const kernel::ProgramStatistics& program : object.programs) {
      const metrics::Labels labels{{"probe", probe}, {"program", program.program}};
      misses.add(labels, static_cast<double>(program.misses));
      if (run_statistics) {
        run_seconds.add(labels, static_cast<double>(program.run_ns) * 1e-9);
        runs.add(labels, static_cast<double>(program.runs));
      }
    }
    for (const auto& [reason, events] : losses(object)) {
      lost.add({{"probe", probe}, {"reason", std::string(reason)}}, static_cast<double>(events));
    }
    lost.add({{"probe", probe}, {"reason", "skipped"}}, static_cast<double>(skipped));
    for (const kernel::MapFill& fill : object.maps) {
      const metrics::Labels labels{{"probe", probe}, {"map", fill.map}};
      entries.add(labels, static_cast<double>(fill.entries));
      max_entries.add(labels, static_cast<double>(fill.max_entries));
    }
  }
  return {attached, run_seconds, runs, misses, lost, entries, max_entries};
}

std::vector<SelfFamily> target_metrics(std::span<const targets::DesiredTarget* const> reported,
                                       const TableNumbers& numbers) {
  SelfFamily info("tacho_target_info");
  for (const targets::DesiredTarget* target : reported) {
    const targets::CgroupIdentity& identity = target->identity;
    metrics::Labels labels = target->labels;
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
    info.add(std::move(labels), 1);
  }
  const targets::TargetTable::Shortfalls& shortfalls = numbers.shortfalls;
  SelfFamily errors("tacho_discovery_errors_total");
  for (const auto& [subject, count] :
       {std::pair("cgroups", shortfalls.cgroups), std::pair("processes", shortfalls.processes),
        std::pair("listeners", shortfalls.listeners)}) {
    errors.add({{"subject", subject}}, static_cast<double>(count));
  }
  return {SelfFamily("tacho_targets", static_cast<double>(numbers.live)),
          SelfFamily("tacho_targets_overflowed_total", static_cast<double>(numbers.overflowed)),
          SelfFamily("tacho_targets_failed_total", static_cast<double>(shortfalls.failed)),
          SelfFamily("tacho_target_members_refused_total", static_cast<double>(shortfalls.refused)),
          errors,
          info};
}

std::vector<SelfFamily> collector_metrics(std::span<const CollectorResult> results) {
  SelfFamily duration("tacho_scrape_collector_duration_seconds");
  SelfFamily success("tacho_scrape_collector_success");
  for (const CollectorResult& result : results) {
    const metrics::Labels labels{{"collector", std::string(result.collector)}};
    duration.add(labels, result.seconds);
    success.add(labels, result.success ? 1 : 0);
  }
  return {duration, success};
}

std::vector<SelfFamily> web_metrics(const WebCounters& counters) {
  SelfFamily lost("tacho_web_connections_lost_total");
  for (const auto& [reason, count] : counters.lost) {
    lost.add({{"reason", reason}}, static_cast<double>(count));
  }
  return {SelfFamily("tacho_web_connections", static_cast<double>(counters.open)),
          SelfFamily("tacho_web_connections_accepted_total", static_cast<double>(counters.accepted)), lost,
          SelfFamily("tacho_web_process_starts_total", static_cast<double>(counters.starts))};
}

std::vector<SelfFamily> rights_metrics(std::span<const process::Rights> processes) {
  constexpr process::CapabilitySet kAlways = process::capability_bit(CAP_BPF) | process::capability_bit(CAP_PERFMON);
  SelfFamily family("tacho_process_capabilities");
  for (const process::Rights& rights : processes) {
    for (unsigned number = 0; number < 64; ++number) {
      const process::CapabilitySet bit = process::capability_bit(number);
      if (((rights.capabilities | kAlways) & bit) != 0) {
        family.add({{"process", rights.process}, {"capability", process::capability_name(number)}},
                   (rights.capabilities & bit) != 0 ? 1 : 0);
      }
    }
  }
  return {family};
}

std::vector<SelfFamily> program_metrics(const ReloadState& reload, std::uint64_t dropped_elsewhere) {
  SelfFamily build("tacho_build_info");
  build.add({{"version", std::string(version())}, {"compiler", __VERSION__}}, 1);
  return {build, SelfFamily("tacho_config_last_reload_successful", reload.successful ? 1 : 0),
          SelfFamily("tacho_config_last_reload_success_timestamp_seconds", reload.success_time),
          SelfFamily("tacho_log_dropped_lines_total", static_cast<double>(dropped_log_lines() + dropped_elsewhere))};
}

}  // namespace tacho::scrape
