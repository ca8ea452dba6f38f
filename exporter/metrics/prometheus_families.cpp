#include "metrics/prometheus_families.h"

#include <array>
#include <cmath>
#include <limits>

#include "metrics/escape.h"
#include "metrics/number.h"

namespace tacho::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

void append_label(std::string& out, std::string_view name, std::string_view value) {
  out += out.ends_with('{') ? "" : ",";
  out.append(name).append("=\"");
  append_label_value(out, value);
  out += '"';
}

/// Writes the lines of one metric.
class Lines {
 public:
  Lines(std::string& out, std::string_view name, const ClientMetric& metric)
      : out_(out), name_(name), metric_(metric) {}

  void add(std::string_view suffix, const Value& value) {
    begin(suffix);
    end(value);
  }

  /// With `le` or `quantile`.
  void add(std::string_view suffix, std::string_view label, double bound, const Value& value) {
    begin(suffix);
    append_label(out_, label, canonical(bound));
    end(value);
  }

 private:
  void begin(std::string_view suffix) {
    out_.append(name_).append(suffix).append("{");
    for (const ClientMetric::Label& label : metric_.label) {
      append_label(out_, label.name, label.value);
    }
  }

  void end(const Value& value) {
    if (out_.ends_with('{')) {
      out_.pop_back();
    } else {
      out_ += '}';
    }
    std::array<char, kMaxNumber> number{};
    char* const last = write_value(number.data(), value);
    out_.append(" ").append(number.data(), last).append("\n");
  }

  std::string& out_;
  std::string_view name_;
  const ClientMetric& metric_;
};

void append_histogram(Lines& lines, const ClientMetric::Histogram& histogram) {
  bool unbounded = false;
  for (const ClientMetric::Bucket& bucket : histogram.bucket) {
    lines.add("_bucket", "le", bucket.upper_bound, Value::count(bucket.cumulative_count));
    unbounded = unbounded || std::isinf(bucket.upper_bound);
  }
  if (!unbounded) {
    lines.add("_bucket", "le", std::numeric_limits<double>::infinity(), Value::count(histogram.sample_count));
  }
  lines.add("_sum", Value::number(histogram.sample_sum));
  lines.add("_count", Value::count(histogram.sample_count));
}

void append_summary(Lines& lines, const ClientMetric::Summary& summary) {
  for (const ClientMetric::Quantile& quantile : summary.quantile) {
    lines.add("", "quantile", quantile.quantile, Value::number(quantile.value));
  }
  lines.add("_sum", Value::number(summary.sample_sum));
  lines.add("_count", Value::count(summary.sample_count));
}

void append_metric(Lines lines, const ClientMetric& metric, MetricType type) {
  switch (type) {
    case MetricType::Counter:
      lines.add("", Value::number(metric.counter.value));
      break;
    case MetricType::Gauge:
      lines.add("", Value::number(metric.gauge.value));
      break;
    case MetricType::Summary:
      append_summary(lines, metric.summary);
      break;
    case MetricType::Histogram:
      append_histogram(lines, metric.histogram);
      break;
    case MetricType::Untyped:
      lines.add("", Value::number(metric.untyped.value));
      break;
  }
}

}  // namespace

std::string_view type_name(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Summary:
      return "summary";
    case MetricType::Histogram:
      return "histogram";
    case MetricType::Untyped:
      break;
  }
  return "untyped";
}

void append_families(std::string& out, std::span<const MetricFamily> families, Format format) {
  for (const MetricFamily& family : families) {
    if (family.metric.empty()) {
      continue;
    }
    append_metadata(out, {.name = family.name, .type = type_name(family.type), .unit = "", .help = family.help},
                    format);
    for (const ClientMetric& metric : family.metric) {
      append_metric(Lines(out, family.name, metric), metric, family.type);
    }
  }
}

}  // namespace tacho::metrics
