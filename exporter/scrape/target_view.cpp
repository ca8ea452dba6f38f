#include "scrape/target_view.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace tacho::scrape {
std::string targets_json(std::span<const TargetSummary> targets, std::span<const std::string> absent,
                         std::span<const process::Rights> processes) {
  using nlohmann::json;
  json list = json::array();
  for (const TargetSummary& target : targets) {
    const double p50 = metrics::quantile(target.sockets.duration, 0.5);
    const double p99 = metrics::quantile(target.sockets.duration, 0.99);
    json entry{{"target", target.name},
               {"state", target.live ? "live" : "ended"},
               {"labels", json::object()},
               {"cgroup", target.identity.path},
               {"container_id", target.identity.container_id},
               {"runtime", target.identity.runtime},
               {"unit", target.identity.unit},
               {"cgroups", target.cgroups},
               {"processes", target.processes},
               {"requests", metrics::total(target.sockets.duration)},
               {"requests_per_second", target.request_rate},
               {"sends_per_second", target.observed_rps},
               {"in_flight", target.sockets.knows_in_flight ? json(target.sockets.in_flight) : json()},
               {"connections", target.sockets.knows_connections ? json(target.sockets.server_connections) : json()},
               {"duration_p50_seconds", std::isnan(p50) ? json(nullptr) : json(p50)},
               {"duration_p99_seconds", std::isnan(p99) ? json(nullptr) : json(p99)},
               {"poll_mean_seconds", target.poll_mean},
               {"conditions", target.conditions}};
    for (const auto& [name, value] : target.labels) {
      entry["labels"][name] = value;
    }
    list.push_back(std::move(entry));
  }
  json document{{"absent", absent}};
  document["targets"] = std::move(list);
  for (const process::Rights& rights : processes) {
    document["processes"].push_back({{"process", rights.process},
                                     {"pid", rights.pid},
                                     {"uid", rights.uid},
                                     {"capabilities", process::capability_names(rights.capabilities)},
                                     {"no_new_privileges", rights.no_new_privileges},
                                     {"system_calls_filtered", rights.filtered},
                                     {"not_permitted", rights.lacks}});
  }
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tacho::scrape
