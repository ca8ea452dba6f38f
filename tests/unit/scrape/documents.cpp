#include "documents.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "metrics/exposition.h"
#include "probes/registry.h"
#include "scrape/conditions.h"
#include "scrape/families.h"
#include "scrape/self_families.h"

namespace tacho::scrape {
namespace {

using metrics::Family;

/// Text of a table cell: a bar would end it, a line feed the table.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') {
      result += "\\|";
    } else {
      result += c == '\n' ? ' ' : c;
    }
  }
  return result;
}

std::string label_cell(const Family& family) {
  if (family.label.empty()) {
    return "";
  }
  std::string result = "`" + std::string(family.label) + "`";
  for (std::size_t i = 0; i < family.values.size(); ++i) {
    result.append(i == 0 ? " = " : ", ").append(cell(family.values[i]));
  }
  return result;
}

std::string hook_cell(const Family& family) {
  std::string result = fmt::format("{}", fmt::join(family.hooks, ", "));
  for (std::size_t i = 0; i < family.value_hooks.size(); ++i) {
    result += fmt::format("{}{}: {}", result.empty() ? "" : ", ", family.values[i], family.value_hooks[i]);
  }
  return result;
}

std::string_view bucket_cell(const Family& family) {
  if (family.type != metrics::Type::histogram) {
    return "";
  }
  switch (family.detail) {
    case metrics::Detail::coarse:
      return "coarse";
    case metrics::Detail::mean:
      return "mean";
    case metrics::Detail::full:
      break;
  }
  return "full";
}

/// The heading `title` ("The `socket` probe") and a table of the families. `{window}` in a help becomes "the configured
/// window".
std::string table(std::string_view title, std::span<const Family> families) {
  std::string out = "## " + std::string(title) +
                    "\n\n| family | type | buckets | unit | labels | appears | hooks | meaning |\n"
                    "|---|---|---|---|---|---|---|---|\n";
  for (const Family& family : families) {
    out.append("| `").append(family.name).append("` | ").append(metrics::type_name(family.type)).append(" | ");
    out.append(bucket_cell(family)).append(" | ").append(family.unit).append(" | ").append(label_cell(family));
    out.append(" | ").append(family.appears == metrics::Appears::first_event ? "first event" : "").append(" | ");
    out.append(hook_cell(family)).append(" | ");
    out.append(cell(metrics::expand_window(family.help, "the configured window"))).append(" |\n");
  }
  return out;
}

}  // namespace

std::string metrics_document() {
  std::string text =
      "# Metrics of tacho\n\n"
      "Generated from the descriptors in `exporter/`; a test fails when this file is stale\n"
      "(`TACHO_UPDATE_GOLDEN=1 build/release/unit_scrape` writes `exporter/METRICS.md` anew).\n\n"
      "Series of a target carry `target`, the labels of its entry in the configuration, and `namespace`, `pod`,\n"
      "`container` where they are known. Counters are the truth; gauges over a window are a convenience, and their\n"
      "HELP names the window.\n\n"
      "Most series of a target exist from its beginning and start at 0. A series of a family that appears with its\n"
      "*first event* is exported once its value is not 0; of a histogram, once an observation was above 0. Each label\n"
      "value appears by itself. The series then has its true value, maybe 3 at once, and stays for as long as the\n"
      "target, whatever it returns to. Before, it is absent: few targets send one-way messages or call others.\n"
      "A family is absent as well if one of its *hooks* is not attached: it would stay at 0, or only grow.\n"
      "A counter that is absent was 0 so far, if its hooks are attached (`tacho_probe_attached`). "
      "`rate()`\n"
      "and `increase()` know nothing of what came before the first sample: write `x or vector(0)`, or\n"
      "`x or 0 * tacho_requests_total` for each target, where an absent `x` should be 0. In protobuf counters and\n"
      "histograms have the time at which their target was added, when they were 0; by `peer` they have none.\n\n"
      "Classic buckets end at powers of two of a second. Their number depends on the family and never on what was\n"
      "observed, so that buckets of several targets add up: *full* is one an octave, from 1 µs to 64 s; *coarse* is "
      "one\n"
      "every two octaves, from 15 µs to 4 s; *mean* is `+Inf` alone, with sum and count. With\n"
      "`histograms.buckets_per_octave: 1`, 2 or 4 all histograms have so many. Scrapers that request Prometheus'\n"
      "protobuf get native histograms as well (`histograms.format`), with all that is counted: schema 4 for\n"
      "`tacho_request_duration_seconds`, 2 for all others, a zero bucket up to 2^-20 s. Durations above the last "
      "bound\n"
      "are in `+Inf` of the classic form, and in the bucket that begins at 64 s of the native one. Families in\n"
      "`metrics.drop` are in no format.\n\n"
      "With `probes.anatomy` buckets of `tacho_request_duration_seconds` have exemplars, in OpenMetrics and\n"
      "protobuf: on classic buckets, or on a native histogram's own; the classic form beside it then has only the\n"
      "slowest. The exemplar of a bucket is its slowest request among the slowest 16 of the current and of the last\n"
      "minute. It has the labels `part`, the part of `tacho_request_time_seconds_total` that the request spent most\n"
      "time in, and `share`, the share of its duration that this was (`0.83`). Its value is the duration in\n"
      "seconds, its timestamp the time at which the first byte of the reply left (Unix time, milliseconds).\n\n";
  for (const probes::Entry& probe : probes::registry()) {
    text += table(probe.title, probe.families());
    text += "\n";
  }
  for (const JudgedFamilies& judged : judged_families()) {
    text += table(judged.title, judged.families);
  }
  text +=
      "\nA condition is about the families that it names, and no other. It is absent where it cannot be judged: its "
      "probe is off,\n"
      "or its hook is not attached.\n\n"
      "| condition | meaning | families that may be wrong |\n"
      "|---|---|---|\n";
  for (const ConditionEntry& condition : condition_table()) {
    text += fmt::format("| `{}` | {} | `{}` |\n", condition.name, condition.meaning,
                        fmt::join(condition.invalidates, "`, `"));
  }
  text += "\n## About tacho itself\n\n| family | type | labels | meaning |\n|---|---|---|---|\n";
  for (const metrics::Family& family : kSelfFamilies) {
    text += "| `" + std::string(family.name) + "` | " + std::string(metrics::type_name(family.type)) + " | " +
            std::string(family.sample_labels) + " | " + std::string(family.help) + " |\n";
  }
  return text;
}

std::string conditions_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ConditionEntry& condition : condition_table()) {
    list.push_back({{"name", condition.name}, {"meaning", condition.meaning}, {"invalidates", condition.invalidates}});
  }
  return list.dump(2) + "\n";
}

}  // namespace tacho::scrape
