#include "scrape/documents.h"

#include <spdlog/fmt/fmt.h>

#include "metrics/document.h"
#include "metrics/exposition.h"
#include "probes/registry.h"
#include "scrape/conditions.h"
#include "scrape/families.h"
#include "scrape/self_families.h"

namespace tacho::scrape {

std::string metrics_document() {
  std::string text =
      "# Metrics of tacho\n\n"
      "Generated from the descriptors in `exporter/`; a test fails when this file is stale\n"
      "(`TACHO_UPDATE_GOLDEN=1 build/release/unit_scrape` writes `exporter/METRICS.md` anew).\n\n"
      "Series of a target carry `target`, the labels of its entry in the configuration, and `namespace`, `pod`,\n"
      "`container` where they are known. Counters are the truth; gauges over a window are a convenience, and their\n"
      "HELP names the window. A target's series exist from its beginning and start at 0.\n\n"
      "Histograms end at powers of two of a second. Text and OpenMetrics have `histograms.buckets_per_octave`\n"
      "classic buckets from one to the next. Scrapers that request Prometheus' protobuf get native histograms as\n"
      "well (`histograms.format`): schema 4 for `tacho_request_duration_seconds`, 2 for all others, a zero bucket\n"
      "up to 2^-20 s. Durations above 64 s are in `+Inf` of the classic form, and in the bucket that begins at 64 s\n"
      "of the native one. Families in `metrics.drop` are in no format.\n\n"
      "With `probes.anatomy` buckets of `tacho_request_duration_seconds` have exemplars, in OpenMetrics and\n"
      "protobuf: on classic buckets, or on a native histogram's own; the classic form beside it then has only the\n"
      "slowest. The exemplar of a bucket is its slowest request among the slowest 16 of the current and of the last\n"
      "minute. It has the labels `part`, the part of `tacho_request_time_seconds_total` that the request spent most\n"
      "time in, and `share`, the share of its duration that this was (`0.83`). Its value is the duration in\n"
      "seconds, its timestamp the time at which the first byte of the reply left (Unix time, milliseconds).\n\n";
  for (const probes::Entry& probe : probes::registry()) {
    text += metrics::metrics_markdown(probe.title, probe.families());
    text += "\n";
  }
  for (const JudgedFamilies& judged : judged_families()) {
    text += metrics::metrics_markdown(judged.title, judged.families);
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
  for (const SelfFamily& family : kSelfFamilies) {
    text += "| `" + std::string(family.name) + "` | " + std::string(metrics::type_name(family.type)) + " | " +
            std::string(family.labels) + " | " + std::string(family.help) + " |\n";
  }
  return text;
}

}  // namespace tacho::scrape
