// prometheus-cpp's serializer as a second opinion, where it is right: it orders buckets as it likes, does not escape
// HELP, writes bounds that are whole numbers without a point, and knows no format but Prometheus text.
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "metrics/family_writer.h"

namespace tacho::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// In any order, without the bounds that prometheus-cpp spells otherwise.
std::vector<std::string> comparable(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto bound = line.find("le=\"");
    const std::string le = bound == std::string::npos ? "" : line.substr(bound + 4, line.find("\"}") - bound - 4);
    if (!le.ends_with(".0") && (le.empty() || le.find_first_of(".I") != std::string::npos)) {
      lines.push_back(line);
    }
  }
  std::ranges::sort(lines);
  return lines;
}

ClientMetric labelled(const Labels& labels) {
  ClientMetric metric;
  for (const auto& [name, value] : labels) {
    metric.label.push_back({name, value});
  }
  return metric;
}

std::string reference(const Family& family, const std::vector<ClientMetric>& metrics) {
  const auto type = family.type == Type::counter ? MetricType::Counter
                    : family.type == Type::gauge ? MetricType::Gauge
                                                 : MetricType::Histogram;
  return prometheus::TextSerializer().Serialize(
      {MetricFamily{std::string(family.name), std::string(family.help), type, metrics}});
}

std::string written(const Family& family, const std::vector<LabelledValue>& samples, Format format) {
  const BucketLayout layout;
  std::string out;
  FamilyWriter({.format = format, .histograms = {}, .window = "10s", .layout = layout}).write(out, family, samples, {});
  return out;
}

constexpr Family kCounter{"t_a_total", Type::counter, "", "Help.", "", {}};
constexpr Family kGauge{"t_b_info", Type::gauge, "", "Help.", "", {}};

const std::vector<LabelledValue> kSamples = {{{{"a", "x\\y\"z\n"}, {"b", ""}}, Value::number(3)},
                                             {{}, Value::number(-0.5)},
                                             {{{"a", "1"}}, Value::number(-kInfinity)},
                                             {{{"a", "2"}}, Value::number(1e21)},
                                             {{{"a", "3"}}, Value::number(kInfinity)}};

TEST_CASE("samples with labels of their own are those of prometheus-cpp's serializer") {
  for (const Family& family : {kCounter, kGauge}) {
    std::vector<ClientMetric> metrics;
    for (const auto& [labels, value] : kSamples) {
      ClientMetric& metric = metrics.emplace_back(labelled(labels));
      metric.counter.value = value.real;
      metric.gauge.value = value.real;
    }
    CHECK(comparable(written(family, kSamples, Format::prometheus_text)) == comparable(reference(family, metrics)));
  }
}

TEST_CASE("samples with labels of their own in OpenMetrics") {
  CHECK(written(kCounter, kSamples, Format::openmetrics) ==
        "# TYPE t_a counter\n"
        "# HELP t_a Help.\n"
        "t_a_total{a=\"x\\\\y\\\"z\\n\",b=\"\"} 3\n"
        "t_a_total -0.5\n"
        "t_a_total{a=\"1\"} -Inf\n"
        "t_a_total{a=\"2\"} 1e+21\n"
        "t_a_total{a=\"3\"} +Inf\n");
}

TEST_CASE("a family about tacho itself that has no samples is not there") {
  for (const Format format : kFormats) {
    CHECK(written(kGauge, {}, format).empty());
  }
}

TEST_CASE("a target's series are those of prometheus-cpp's serializer") {
  constexpr std::array<Family, 2> kFamilies = {
      {{"t_x_seconds", Type::histogram, "seconds", "Help.", "", {}}, kCounter}};
  const BucketLayout layout(1);
  const Labels labels{{"target", "a\"b"}};
  const TargetSeries series(kFamilies, labels, layout);
  std::mt19937_64 random(11);
  Row row;
  row.values = {Value::count(random() % 100'000)};
  row.histograms.resize(1);
  for (std::uint64_t& slot : row.histograms[0].slots) {
    slot = random() % 1000;
  }
  row.histograms[0].sum_ns = 123'456'789;

  ClientMetric histogram = labelled(labels);
  ClientMetric counter = histogram;
  counter.counter.value = static_cast<double>(row.values[0].integer);
  std::size_t slot = 0;
  for (const BucketLayout::Bucket& bucket : layout.buckets()) {
    for (; slot <= bucket.last(Histogram::kPerOctave); ++slot) {
      histogram.histogram.sample_count += row.histograms[0].slots[slot];
    }
    histogram.histogram.bucket.push_back({histogram.histogram.sample_count, bucket.bound});
  }
  histogram.histogram.sample_sum = 0.123456789;
  FamilyWriter writer({.format = Format::prometheus_text, .histograms = {}, .window = "10s", .layout = layout});
  for (std::size_t i = 0; i < kFamilies.size(); ++i) {
    std::string out;
    writer.begin(out, kFamilies, i);
    writer.add(out, series, {}, row);
    writer.end(out);
    const std::vector<std::string> lines = comparable(out);
    CHECK(lines == comparable(reference(kFamilies.at(i), {i == 0 ? histogram : counter})));
    CHECK(lines.size() == (i == 0 ? 2 + 20 + 1 + 2 : 3));
  }
}

}  // namespace
}  // namespace tacho::metrics
