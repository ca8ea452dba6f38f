#include "scrape/documents.h"

#include <spdlog/fmt/fmt.h>

#include "metrics/document.h"
#include "metrics/exposition.h"
#include "probes/registry.h"
#include "scrape/conditions.h"
#include "scrape/diagnosis.h"
#include "scrape/saturation.h"
#include "scrape/self_families.h"

namespace tacho::scrape {

std::string metrics_document() {
  std::string text =
      "# Metrics of tacho\n\n"
      "Generated from the descriptors in `exporter/`; a test fails when this file is stale\n"
      "(`TACHO_UPDATE_GOLDEN=1 build/release/unit_scrape` writes `exporter/METRICS.md` anew).\n\n"
      "Series of a target carry `target`, the labels of its entry in the configuration, and `namespace`, `pod`,\n"
      "`container` where they are known. Counters are the truth; gauges over a window are a convenience, and their "
      "window\n"
      "is in their HELP. A target's series exist from the moment it does, starting at 0.\n\n"
      "Histograms end at powers of two of a second. Text and OpenMetrics have `histograms.buckets_per_octave` classic "
      "buckets\nfrom one to the next. Who asks for Prometheus' protobuf gets native histograms as well "
      "(`histograms.format`): schema 4 for\n`tacho_request_duration_seconds`, 2 for all others, a zero bucket up to "
      "2^-20 s. What is longer than 64 s is in `+Inf` of the\nclassic form, and in the bucket that begins at 64 s of "
      "the "
      "native one. Families that `metrics.drop` names are in no format.\n\n"
      "With `probes.anatomy` buckets of `tacho_request_duration_seconds` have exemplars, in OpenMetrics and protobuf "
      "(classic buckets,\nor a native histogram's own, beside which the classic form has the slowest alone): of the "
      "slowest 16 "
      "requests\nof the current and of the last minute the slowest one in each bucket, with `part`, what it waited "
      "for\nmost (of those of "
      "`tacho_request_time_seconds_total`), `share`, how much of its duration that was (`0.83`), its duration in "
      "seconds,\nand when the first byte of its reply left (Unix time, milliseconds).\n\n";
  for (const probes::Entry& probe : probes::registry()) {
    text += metrics::metrics_markdown(probe.title, probe.families());
    text += "\n";
  }
  text += metrics::metrics_markdown("Saturation", saturation_families());
  text += metrics::metrics_markdown("Bottleneck", bottleneck_families());
  text += metrics::metrics_markdown("Validity", condition_families());
  text +=
      "\nA condition judges the families that it names, and no other. It is absent where it cannot be seen: its probe "
      "is "
      "off,\nor its hook is not attached.\n\n| condition | meaning | families that do not mean what they say |\n"
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
