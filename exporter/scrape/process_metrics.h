#pragma once

#include <prometheus/metric_family.h>

#include <chrono>
#include <vector>

namespace tacho::scrape {

/// When this process started; within a clock tick. The Unix epoch where /proc does not tell.
std::chrono::system_clock::time_point process_start();

/// The usual `process_*` families of this process, as Prometheus' client libraries name them.
std::vector<prometheus::MetricFamily> process_metrics();

}  // namespace tacho::scrape
