#pragma once

#include <chrono>
#include <vector>

#include "scrape/self_families.h"

namespace tacho::scrape {

/// When this process started; within a clock tick. The Unix epoch where /proc is unavailable.
std::chrono::system_clock::time_point process_start();

/// The resources that the process which serves the network uses.
struct ServingCost {
  double cpu_seconds = 0;
  double memory_bytes = 0;  ///< of its own
};

/// The usual `process_*` families of this process, as Prometheus' client libraries name them. CPU and resident memory
/// include those of the other process.
std::vector<SelfFamily> process_metrics(const ServingCost& other = {});

}  // namespace tacho::scrape
