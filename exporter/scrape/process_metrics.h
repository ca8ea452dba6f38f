#pragma once

#include <prometheus/metric_family.h>

#include <vector>

namespace tacho::scrape {

/// The usual `process_*` families of this process, as Prometheus' client libraries name them.
std::vector<prometheus::MetricFamily> process_metrics();

}  // namespace tacho::scrape
