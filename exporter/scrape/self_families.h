#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/family_writer.h"

namespace tacho::scrape {

/// A family about tacho itself.
/// @param labels of its samples, comma-separated
constexpr metrics::Family self_family(std::string_view name, metrics::Type type, std::string_view labels,
                                      std::string_view help) {
  return {.name = name, .type = type, .unit = "", .help = help, .label = "", .values = {}, .sample_labels = labels};
}

inline constexpr std::array kSelfFamilies{
    self_family("tacho_build_info", metrics::Type::gauge, "version,compiler", "1; how this tacho was built."),
    self_family("tacho_targets", metrics::Type::gauge, "", "Targets that are watched now."),
    self_family("tacho_targets_overflowed_total", metrics::Type::counter, "",
                "Targets without a place (limits.max_targets); they are counted in target \"other\"."),
    self_family("tacho_targets_failed_total", metrics::Type::counter, "",
                "Failed attempts to watch a target, for lack of memory or descriptors; repeated every second."),
    self_family("tacho_target_members_refused_total", metrics::Type::counter, "",
                "Cgroups and processes of targets that are not watched because a BPF map is full."),
    self_family("tacho_discovery_errors_total", metrics::Type::counter, "subject",
                "Failed scans of the machine's cgroups, processes or listeners; the previous state is retained."),
    self_family("tacho_target_info", metrics::Type::gauge,
                "target,cgroup,container_id,runtime,image,compose_project,compose_service,pod_uid,workload,"
                "workload_kind,node,unit,user,machine",
                "1; metadata of a target; labels without a value are left out."),
    self_family("tacho_probe_attached", metrics::Type::gauge, "probe,hook,method",
                "1 if the hook is attached, by this method; 0 with method \"none\" if no method works."),
    self_family("tacho_probe_run_seconds_total", metrics::Type::counter, "probe,program",
                "Time spent in the BPF program (only with run_statistics: true)."),
    self_family("tacho_probe_runs_total", metrics::Type::counter, "probe,program",
                "Runs of the BPF program (only with run_statistics: true)."),
    self_family(
        "tacho_probe_misses_total", metrics::Type::counter, "probe,program",
        "Runs that the kernel skipped because the program was running on that CPU already, interrupted or "
        "preempted. For sockets, on Linux 7.0 and later, a second program (_again) makes up for the first one."),
    self_family("tacho_lost_events_total", metrics::Type::counter, "probe,reason",
                "Events that were not counted. skipped: the kernel did not run a program for them, "
                "tacho_probe_misses_total counts these runs; an upper bound where there is a second program."),
    self_family("tacho_map_entries", metrics::Type::gauge, "probe,map", "Entries in a BPF map."),
    self_family("tacho_map_max_entries", metrics::Type::gauge, "probe,map", "Room for entries in a BPF map."),
    self_family("tacho_scrape_collector_duration_seconds", metrics::Type::gauge, "collector",
                "Time that reading and writing this collector's series took in this scrape."),
    self_family("tacho_scrape_collector_success", metrics::Type::gauge, "collector",
                "1 if the collector's series are complete."),
    self_family("tacho_config_last_reload_successful", metrics::Type::gauge, "",
                "1 if the configuration was valid when it was last read; if not, the previous one is in use."),
    self_family("tacho_config_last_reload_success_timestamp_seconds", metrics::Type::gauge, "",
                "Time at which a valid configuration was last read (Unix time)."),
    self_family("tacho_web_connections", metrics::Type::gauge, "", "Connections to tacho's own web server now."),
    self_family("tacho_web_connections_accepted_total", metrics::Type::counter, "",
                "Connections to tacho's own web server."),
    self_family(
        "tacho_web_connections_lost_total", metrics::Type::counter, "reason",
        "Connections to tacho's own web server that got no complete answer. no_request: no complete request "
        "arrived in time; crowded_out: there were too many connections; slow_reader: the client took too little "
        "of the answer; busy: too many requests were waiting, or more came than `rate_limit` allows."),
    self_family(
        "tacho_web_process_starts_total", metrics::Type::counter, "",
        "Starts of the process that serves the network. Each but the first replaced a process that had ended or hung."),
    self_family("tacho_log_dropped_lines_total", metrics::Type::counter, "",
                "Lines of the log that were dropped because nobody read it."),
    self_family("tacho_process_capabilities", metrics::Type::gauge, "process,capability",
                "1 if this process of tacho (collector: counts; web: serves the network) holds the kernel capability. "
                "bpf and perfmon are also reported with 0, the others only where they are held."),
    self_family("process_cpu_seconds_total", metrics::Type::counter, "",
                "User and system CPU time of tacho, of both processes."),
    self_family("process_open_fds", metrics::Type::gauge, "", "Open file descriptors of the process that counts."),
    self_family("process_max_fds", metrics::Type::gauge, "", "Limit of open file descriptors."),
    self_family("process_start_time_seconds", metrics::Type::gauge, "", "When tacho started (Unix time)."),
    self_family("process_virtual_memory_bytes", metrics::Type::gauge, "", "Virtual memory of the process that counts."),
    self_family("process_resident_memory_bytes", metrics::Type::gauge, "",
                "Resident memory of tacho's processes; shared memory counts once."),
    self_family("process_threads", metrics::Type::gauge, "", "Threads of the process that counts."),
};

/// Name of one of kSelfFamilies; an unknown one fails to compile.
struct SelfName {
  const metrics::Family& family;
  consteval SelfName(const char* name)  // NOLINT(google-explicit-constructor)
      : family(*std::ranges::find(kSelfFamilies, std::string_view(name), &metrics::Family::name)) {}
};

/// What there is of a family about tacho itself.
struct SelfFamily {
  explicit SelfFamily(SelfName name) : family(&name.family) {}
  /// Of one sample without labels.
  SelfFamily(SelfName name, double value) : SelfFamily(name) { add({}, value); }

  void add(metrics::Labels labels, double value) {
    samples.push_back({.labels = std::move(labels), .value = metrics::Value::number(value)});
  }

  const metrics::Family* family;
  std::vector<metrics::LabelledValue> samples;
};

}  // namespace tacho::scrape
