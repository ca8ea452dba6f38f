#include "metrics/prometheus_families.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "metrics/series.h"

namespace tacho::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

MetricFamily family(std::string name, MetricType type, std::vector<ClientMetric> metrics) {
  return {std::move(name), "Help.", type, std::move(metrics)};
}

ClientMetric labelled(std::vector<ClientMetric::Label> labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  return metric;
}

std::string text(const std::vector<MetricFamily>& families, Format format) {
  std::string out;
  append_families(out, families, format);
  return out;
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    result.push_back(line);
  }
  std::ranges::sort(result);
  return result;
}

std::vector<MetricFamily> all_types() {
  ClientMetric counter = labelled({{"a", "x\\y\"z\n"}, {"b", ""}});
  counter.counter.value = 3;
  ClientMetric gauge;
  gauge.gauge.value = -0.5;
  ClientMetric infinite = labelled({{"a", "1"}});
  infinite.gauge.value = -kInfinity;
  ClientMetric untyped;
  untyped.untyped.value = 12.25;
  ClientMetric summary;
  summary.summary = {4, 2.5, {{0.5, 0.25}, {0.99, 0.75}}};
  ClientMetric histogram = labelled({{"a", "1"}});
  histogram.histogram = {5, 7.5, {{1, 0.5}, {4, 2.5}, {5, kInfinity}}};
  ClientMetric unbounded;
  unbounded.histogram = {9, 0.5, {{2, 0.5}}};
  return {family("t_a_total", MetricType::Counter, {counter}),
          family("t_b_info", MetricType::Gauge, {gauge, infinite}),
          family("t_c", MetricType::Untyped, {untyped}),
          family("t_d_seconds", MetricType::Summary, {summary}),
          family("t_e_seconds", MetricType::Histogram, {histogram}),
          family("t_f_seconds", MetricType::Histogram, {unbounded})};
}

TEST_CASE("Prometheus text has the lines of prometheus-cpp's serializer where that one is right") {
  const prometheus::TextSerializer reference;
  for (const MetricFamily& one : all_types()) {
    CAPTURE(one.name);
    CHECK(sorted_lines(text({one}, Format::prometheus_text)) == sorted_lines(reference.Serialize({one})));
  }
}

TEST_CASE("OpenMetrics") {
  CHECK(text(all_types(), Format::openmetrics) ==
        "# TYPE t_a counter\n"
        "# HELP t_a Help.\n"
        "t_a_total{a=\"x\\\\y\\\"z\\n\",b=\"\"} 3\n"
        "# TYPE t_b_info gauge\n"
        "# HELP t_b_info Help.\n"
        "t_b_info -0.5\n"
        "t_b_info{a=\"1\"} -Inf\n"
        "# TYPE t_c unknown\n"
        "# HELP t_c Help.\n"
        "t_c 12.25\n"
        "# TYPE t_d_seconds summary\n"
        "# HELP t_d_seconds Help.\n"
        "t_d_seconds{quantile=\"0.5\"} 0.25\n"
        "t_d_seconds{quantile=\"0.99\"} 0.75\n"
        "t_d_seconds_sum 2.5\n"
        "t_d_seconds_count 4\n"
        "# TYPE t_e_seconds histogram\n"
        "# HELP t_e_seconds Help.\n"
        "t_e_seconds_bucket{a=\"1\",le=\"0.5\"} 1\n"
        "t_e_seconds_bucket{a=\"1\",le=\"2.5\"} 4\n"
        "t_e_seconds_bucket{a=\"1\",le=\"+Inf\"} 5\n"
        "t_e_seconds_sum{a=\"1\"} 7.5\n"
        "t_e_seconds_count{a=\"1\"} 5\n"
        "# TYPE t_f_seconds histogram\n"
        "# HELP t_f_seconds Help.\n"
        "t_f_seconds_bucket{le=\"0.5\"} 2\n"
        "t_f_seconds_bucket{le=\"+Inf\"} 9\n"
        "t_f_seconds_sum 0.5\n"
        "t_f_seconds_count 9\n");
}

TEST_CASE("what prometheus-cpp's serializer gets wrong") {
  ClientMetric metric;
  metric.histogram = {1, 1, {{1, 1}}};
  metric.timestamp_ms = 5;
  MetricFamily one = family("t_seconds", MetricType::Histogram, {metric});
  one.help = "two\nlines \\ \"quoted\"";
  CHECK(text({one}, Format::prometheus_text) ==
        "# HELP t_seconds two\\nlines \\\\ \"quoted\"\n"
        "# TYPE t_seconds histogram\n"
        "t_seconds_bucket{le=\"1.0\"} 1\n"
        "t_seconds_bucket{le=\"+Inf\"} 1\n"
        "t_seconds_sum 1\n"
        "t_seconds_count 1\n");
  CHECK(text({family("t_empty", MetricType::Gauge, {})}, Format::openmetrics).empty());
}

/// The same histogram and counter through both paths.
TEST_CASE("the fast path writes what the data model writes") {
  constexpr std::array<Family, 2> kFamilies = {{{"t_x_seconds", Type::histogram, "seconds", "Help.", "", {}},
                                                {"t_y_total", Type::counter, "", "Help.", "", {}}}};
  const BucketLayout layout(4);
  const TargetSeries series(kFamilies, Labels{{"target", "a\"b"}}, layout);
  std::mt19937_64 random(11);
  Row row;
  row.values = {Value::count(random() % 100'000)};
  row.histograms.resize(1);
  for (std::uint64_t& slot : row.histograms[0].slots) {
    slot = random() % 1000;
  }
  row.histograms[0].sum_ns = 123'456'789;

  ClientMetric histogram = labelled({{"target", "a\"b"}});
  ClientMetric counter = histogram;
  counter.counter.value = static_cast<double>(row.values[0].integer);
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    histogram.histogram.sample_count += row.histograms[0].slots[slot];
    const double bound = slot_bound_seconds(slot, Histogram::kPerOctave);
    histogram.histogram.bucket.push_back({histogram.histogram.sample_count, bound});
  }
  histogram.histogram.sample_sum = 0.123456789;
  const std::vector<MetricFamily> families = {family("t_x_seconds", MetricType::Histogram, {histogram}),
                                              family("t_y_total", MetricType::Counter, {counter})};
  std::string out;
  for (std::size_t i = 0; i < kFamilies.size(); ++i) {
    append_header(out, kFamilies[i], Format::prometheus_text, "10s");
    series.append(out, i, row);
  }
  CHECK(out == text(families, Format::prometheus_text));
}

}  // namespace
}  // namespace tacho::metrics
