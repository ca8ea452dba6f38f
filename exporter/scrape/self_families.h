#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/family.h"

namespace tacho::scrape {

/// A family about tacho itself; METRICS.md derives from it.
struct SelfFamily {
  std::string_view name;
  metrics::Type type = metrics::Type::gauge;
  std::string_view labels;  ///< comma-separated names, for the documentation
  std::string_view help;
};

inline constexpr std::array kSelfFamilies{
    SelfFamily{"tacho_build_info", metrics::Type::gauge, "version,compiler", "1; how this tacho was built."},
    SelfFamily{"tacho_targets", metrics::Type::gauge, "", "Targets that are watched now."},
    SelfFamily{"tacho_targets_overflowed_total", metrics::Type::counter, "",
               "Targets that found no place (limits.max_targets) and are counted in target \"other\"."},
    SelfFamily{"tacho_targets_failed_total", metrics::Type::counter, "",
               "Attempts to watch a target that failed, for want of memory or descriptors; repeated every second."},
    SelfFamily{"tacho_target_members_refused_total", metrics::Type::counter, "",
               "Cgroups and processes of targets that are not watched for want of room in a BPF map."},
    SelfFamily{"tacho_discovery_errors_total", metrics::Type::counter, "subject",
               "Looks at the machine's cgroups, processes or listeners that failed; what was known before is kept."},
    SelfFamily{"tacho_target_info", metrics::Type::gauge,
               "target,cgroup,container_id,runtime,image,compose_project,compose_service,pod_uid,workload,"
               "workload_kind,node,unit,user,machine",
               "1; what is known about a target; a label that has nothing to say is left out."},
    SelfFamily{"tacho_probe_attached", metrics::Type::gauge, "probe,hook,method",
               "1 if the hook is attached, by this method; 0 with method \"none\" if no method works."},
    SelfFamily{"tacho_probe_run_seconds_total", metrics::Type::counter, "probe,program",
               "Time spent in the BPF program (only with run_statistics: true)."},
    SelfFamily{"tacho_probe_runs_total", metrics::Type::counter, "probe,program",
               "Runs of the BPF program (only with run_statistics: true)."},
    SelfFamily{"tacho_probe_misses_total", metrics::Type::counter, "probe,program",
               "Runs that the kernel skipped because the program was running on that CPU already, interrupted or "
               "preempted. On Linux 7.0 and later a second program (_again) makes up for the first one of sockets."},
    SelfFamily{"tacho_lost_events_total", metrics::Type::counter, "probe,reason",
               "Events that could not be counted. skipped: that the kernel kept from the programs, of which "
               "tacho_probe_misses_total counts the runs; where there is a second program, at most so many."},
    SelfFamily{"tacho_map_entries", metrics::Type::gauge, "probe,map", "Entries in a BPF map."},
    SelfFamily{"tacho_map_max_entries", metrics::Type::gauge, "probe,map", "Room for entries in a BPF map."},
    SelfFamily{"tacho_scrape_collector_duration_seconds", metrics::Type::gauge, "collector",
               "How long reading and writing this collector's series took in the scrape before this line."},
    SelfFamily{"tacho_scrape_collector_success", metrics::Type::gauge, "collector",
               "Whether the collector's series are complete."},
    SelfFamily{"tacho_config_last_reload_successful", metrics::Type::gauge, "",
               "Whether the configuration was good when it was read last; if not, the one before is in use."},
    SelfFamily{"tacho_config_last_reload_success_timestamp_seconds", metrics::Type::gauge, "",
               "When a good configuration was read last (Unix time)."},
    SelfFamily{"tacho_web_connections", metrics::Type::gauge, "", "Connections to tacho's own web server now."},
    SelfFamily{"tacho_web_connections_accepted_total", metrics::Type::counter, "",
               "Connections to tacho's own web server."},
    SelfFamily{"tacho_web_connections_lost_total", metrics::Type::counter, "reason",
               "Connections to tacho's own web server that got no whole answer: no whole request came in time "
               "(no_request), there were too many (crowded_out), the client took too little of the answer "
               "(slow_reader), too many requests were in line (busy)."},
    SelfFamily{"tacho_web_process_starts_total", metrics::Type::counter, "",
               "Processes that served the network so far: each but the first was started because the one before had "
               "ended, or had hung."},
    SelfFamily{"tacho_log_dropped_lines_total", metrics::Type::counter, "",
               "Lines of the log that were dropped because nobody read it."},
    SelfFamily{"tacho_process_capabilities", metrics::Type::gauge, "process,capability",
               "1: this process of tacho (collector: counts; web: serves the network) holds the capability of the "
               "kernel; bpf and perfmon also with 0, the others only where they are held."},
    SelfFamily{"process_cpu_seconds_total", metrics::Type::counter, "",
               "User and system CPU time of tacho, of both processes."},
    SelfFamily{"process_open_fds", metrics::Type::gauge, "", "Open file descriptors of the process that counts."},
    SelfFamily{"process_max_fds", metrics::Type::gauge, "", "Limit of open file descriptors."},
    SelfFamily{"process_start_time_seconds", metrics::Type::gauge, "", "When tacho started (Unix time)."},
    SelfFamily{"process_virtual_memory_bytes", metrics::Type::gauge, "", "Virtual memory of the process that counts."},
    SelfFamily{"process_resident_memory_bytes", metrics::Type::gauge, "",
               "Resident memory of tacho; what its processes share counts once."},
    SelfFamily{"process_threads", metrics::Type::gauge, "", "Threads of the process that counts."},
};

/// An empty family of kSelfFamilies in prometheus-cpp's model; an unknown name fails to compile.
consteval const SelfFamily& self_family(std::string_view name) {
  for (const SelfFamily& family : kSelfFamilies) {
    if (family.name == name) {
      return family;
    }
  }
  throw "not among kSelfFamilies";
}

/// Name of one of kSelfFamilies, checked when compiled.
struct SelfName {
  const SelfFamily& family;
  consteval SelfName(const char* name) : family(self_family(name)) {}  // NOLINT(google-explicit-constructor)
};

prometheus::MetricFamily empty_family(SelfName name);

/// A family of one sample without labels.
prometheus::MetricFamily single(SelfName name, double value);

using LabelPairs = std::vector<std::pair<std::string, std::string>>;

/// Adds a sample.
void add_sample(prometheus::MetricFamily& family, LabelPairs labels, double value);

}  // namespace tacho::scrape
