#pragma once

#include <prometheus/metric_family.h>

#include <span>
#include <string>

#include "metrics/exposition.h"

namespace tacho::metrics {

/// Appends families that prometheus-cpp's data model holds (the few about tacho itself), header and samples, spelled as
/// the per-target families are; prometheus-cpp's own TextSerializer knows one format and does not escape HELP.
/// A counter's family is named with `_total`. Labels keep their order, a histogram without a +Inf bucket gets one,
/// timestamps are left out, and so is a family without samples. Names ending in `_info` are gauges of value 1: the
/// OpenMetrics type `info` would have the same sample names, and its parsers take the gauge as well.
/// Text formats only; see append_proto_families().
void append_families(std::string& out, std::span<const prometheus::MetricFamily> families, Format format);

/// "counter", "gauge" …, "untyped".
std::string_view type_name(prometheus::MetricType type);

}  // namespace tacho::metrics
