#include "scrape/target_view.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "base/version.h"

namespace tacho::scrape {
namespace {

/// As text of a page; bytes that are not UTF-8 become U+FFFD.
std::string escape_html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    const std::string_view character = length == 0 ? "\uFFFD" : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
    switch (character.front()) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += character;
    }
  }
  return out;
}

/// "1.25 ms"; a dash where nothing was observed.
std::string format_time(double seconds) {
  if (std::isnan(seconds)) {
    return "–";
  }
  if (seconds < 1e-3) {
    return fmt::format("{:.0f} µs", seconds * 1e6);
  }
  return seconds < 1 ? fmt::format("{:.1f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

std::string describe(const TargetSummary& target) {
  std::string text = target.name;
  for (const auto& [name, value] : target.labels) {
    if (name != "target") {
      text.append(" ").append(name).append("=").append(value);
    }
  }
  return text;
}

std::string join(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) {
    text += (text.empty() ? "" : ", ") + std::string(word);
  }
  return text;
}

std::vector<const TargetSummary*> busiest_first(std::span<const TargetSummary> targets) {
  std::vector<const TargetSummary*> order;
  for (const TargetSummary& target : targets) {
    order.push_back(&target);
  }
  std::ranges::sort(order, [](const auto* a, const auto* b) {
    return a->request_rate != b->request_rate ? a->request_rate > b->request_rate : a->labels < b->labels;
  });
  return order;
}

}  // namespace

std::string targets_json(std::span<const TargetSummary> targets, std::span<const std::string> absent) {
  using nlohmann::json;
  json list = json::array();
  for (const TargetSummary& target : targets) {
    const double p50 = metrics::quantile(target.counts.duration, 0.5);
    const double p99 = metrics::quantile(target.counts.duration, 0.99);
    json entry{{"target", target.name},
               {"state", target.live ? "live" : "ended"},
               {"labels", json::object()},
               {"cgroup", target.identity.path},
               {"container_id", target.identity.container_id},
               {"runtime", target.identity.runtime},
               {"unit", target.identity.unit},
               {"cgroups", target.cgroups},
               {"processes", target.processes},
               {"requests", target.counts.requests},
               {"requests_per_second", target.request_rate},
               {"sends_per_second", target.observed_rps},
               {"in_flight", target.counts.in_flight},
               {"connections", target.counts.server_connections},
               {"duration_p50_seconds", std::isnan(p50) ? json(nullptr) : json(p50)},
               {"duration_p99_seconds", std::isnan(p99) ? json(nullptr) : json(p99)},
               {"poll_mean_seconds", target.poll_mean},
               {"conditions", target.conditions}};
    for (const auto& [name, value] : target.labels) {
      entry["labels"][name] = value;
    }
    list.push_back(std::move(entry));
  }
  const json document{{"targets", list}, {"absent", absent}};
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string targets_html(std::span<const TargetSummary> targets, const std::string& telemetry_path) {
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>tacho</title>\n"
      "<meta name=\"viewport\" content=\"width=device-width\"><meta http-equiv=\"refresh\" content=\"5\">\n"
      "<style>:root{{color-scheme:light dark}}body{{font:15px system-ui,sans-serif;margin:2em}}"
      "table{{border-collapse:collapse}}th,td{{padding:.3em .8em;border-bottom:1px solid #8884;text-align:right}}"
      "th:first-child,td:first-child,td:last-child{{text-align:left}}</style></head>\n"
      "<body><h1>tacho</h1><p>Version {}. <a href=\"{}\">Metrics</a> · <a href=\"/targets\">Targets as JSON</a></p>\n",
      escape_html(version()), escape_html(telemetry_path));
  page +=
      "<table><thead><tr><th>target</th><th>requests/s</th><th>p50</th><th>p99</th><th>queue p99</th><th>in flight</th>"
      "<th>connections</th><th>sends/s</th><th>conditions</th></tr></thead><tbody>\n";
  for (const TargetSummary* target : busiest_first(targets)) {
    page += fmt::format(
        "<tr><td>{}</td><td>{:.1f}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.1f}</td><td>{}</"
        "td></tr>\n",
        escape_html(describe(*target)), target->request_rate,
        format_time(metrics::quantile(target->counts.duration, 0.5)),
        format_time(metrics::quantile(target->counts.duration, 0.99)),
        format_time(metrics::quantile(target->counts.queue, 0.99)), target->counts.in_flight,
        target->counts.server_connections, target->observed_rps, escape_html(join(target->conditions)));
  }
  page += "</tbody></table></body></html>\n";
  return page;
}

std::string targets_text(std::span<const TargetSummary> targets) {
  std::string text = fmt::format("{:<40} {:>12} {:>10} {:>10} {:>10} {:>12}\n", "TARGET", "REQUESTS/s", "p50", "p99",
                                 "IN FLIGHT", "SENDS/s");
  for (const TargetSummary* target : busiest_first(targets)) {
    text += fmt::format("{:<40} {:>12.1f} {:>10} {:>10} {:>10} {:>12.1f}\n", printable(describe(*target)),
                        target->request_rate, format_time(metrics::quantile(target->counts.duration, 0.5)),
                        format_time(metrics::quantile(target->counts.duration, 0.99)), target->counts.in_flight,
                        target->observed_rps);
  }
  return text;
}

}  // namespace tacho::scrape
