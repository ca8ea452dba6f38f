// metrics_exposition_sample text|openmetrics|protobuf|classic|native SEED: prints an exposition with everything that
// exporter/metrics can write, for the judges of exposition_judges.py.
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/exposition.h"
#include "metrics/family_writer.h"
#include "metrics/proto_family.h"
#include "metrics/series.h"

namespace {

using namespace std::string_literals;
using namespace tacho::metrics;

constexpr std::array<std::string_view, 2> kDirections = {"send", "receive"};
constexpr std::array<std::string_view, 4> kOutcomes = {"ready", "timeout", "nonblocking", "error"};
constexpr std::array<std::string_view, 3> kConditions = {"multiplexed", "busy_polling", "few_samples"};

constexpr std::array<Family, 16> kFamilies = {{
    {"tacho_socket_operations_total", Type::counter, "", "Successful socket operations.", "direction", kDirections},
    {"tacho_socket_bytes_total", Type::counter, "bytes", "Payload \"bytes\",\nback\\slash.", "direction", kDirections},
    {"tacho_socket_interval_seconds_total", Type::counter, "seconds", "Sum of intervals.", "direction", kDirections},
    {"tacho_socket_interval_seconds_squared_total", Type::counter, "seconds_squared", "Sum of squared intervals.",
     "direction", kDirections},
    {"tacho_observed_rps", Type::gauge, "", "Sends per second over {window} or the last 2048 sends.", "", {}},
    {"tacho_inter_syscall_variance_seconds_squared", Type::gauge, "seconds_squared", "Variance over {window}.",
     "direction", kDirections},
    {"tacho_inter_syscall_cv2", Type::gauge, "", "Variance over squared mean over {window}.", "direction", kDirections},
    {"tacho_poll_duration_seconds", Type::histogram, "seconds", "Time in polling calls.", "outcome", kOutcomes},
    {"tacho_poll_duration_mean_seconds", Type::gauge, "seconds", "Mean over {window}.", "", {}},
    {"tacho_requests_total", Type::counter, "", "Requests answered.", "", {}},
    {"tacho_request_duration_seconds", Type::histogram, "seconds", "Arrival to first byte of the reply.", "", {}, true},
    {"tacho_request_queue_seconds", Type::histogram, "seconds", "Arrival to read.", "", {}},
    {"tacho_saturation_ratio", Type::gauge, "ratio", "0 idle, 1 saturated.", "", {}},
    {"tacho_dependency_calls_total", Type::counter, "", "Calls to others.", "peer", {}},
    {"tacho_dependency_duration_seconds", Type::histogram, "seconds", "Last send to first byte back.", "peer", {}},
    {"tacho_target_condition", Type::gauge, "", "Why a series may not mean what it says.", "condition", kConditions},
}};

const std::vector<Labels> kTargets = {
    {{"target", "web"}, {"namespace", "prod"}, {"pod", "web-5f7"}, {"container", "nginx"}, {"team", "payments"}},
    {{"target", "back\\slash \"quoted\"\nnew line {brace} a=b,c} # x"}},
    {{"target", "bytes \xff\xc3 nul \0 end\r"s}, {"empty", ""}, {"pod", "Grüße 🚀"}},
    {{"target", "idle"}},
};

const std::chrono::sys_time<std::chrono::nanoseconds> kCreated{std::chrono::nanoseconds(1'234'567'890'123'456'789)};

constexpr std::int64_t kBooted = 1'790'000'000'000'000'000;

using Form = std::pair<Format, HistogramForms>;
const std::map<std::string_view, Form> kForms = {
    {"text", {Format::prometheus_text, {}}},
    {"openmetrics", {Format::openmetrics, {}}},
    {"protobuf", {Format::protobuf, {}}},
    {"classic", {Format::protobuf, {.classic = true, .native = false}}},
    {"native", {Format::protobuf, {.classic = false, .native = true}}},
};

Value any_value(const Family& family, std::mt19937_64& random) {
  if (family.type == Type::gauge) {
    const std::array<double, 6> special = {
        0, -0.0, 1e-12, 12345678.9, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
    const std::size_t pick = random() % 12;
    return Value::number(pick < special.size() ? special.at(pick) : static_cast<double>(random() >> 20) / 1e9);
  }
  return family.unit == "seconds" ? Value::nanoseconds(static_cast<std::int64_t>(random() >> (1 + random() % 62)))
                                  : Value::count(random() >> (random() % 64));
}

template <class Histogram = Histogram>
Histogram any_histogram(std::mt19937_64& random) {
  Histogram histogram;
  for (std::uint64_t& slot : histogram.slots) {
    slot = random() % 3 == 0 ? random() % 1000 : 0;
  }
  histogram.sum_ns = random() >> 20;
  return histogram;
}

Row any_row(std::mt19937_64& random) {
  Row row;
  for (std::size_t f = 0; f < kFamilies.size(); ++f) {
    for (std::size_t i = 0; i < kFamilies[f].samples(); ++i) {
      if (kFamilies[f].fine) {
        row.fine.push_back(any_histogram<FineHistogram>(random));
      } else if (kFamilies[f].type == Type::histogram) {
        row.histograms.push_back(any_histogram(random));
      } else {
        row.values.push_back(any_value(kFamilies[f], random));
      }
    }
    for (const std::string_view peer : {"postgres:5432", "other", "\"\\\n\xfe", "\"\\\n\xff"}) {
      if (kFamilies[f].dynamic()) {
        row.dynamic.push_back({f, std::string(peer), Value::count(random() % 1'000'000), any_histogram(random)});
      }
    }
  }
  // In some buckets several, in most none.
  for (int i = 0; i < 6; ++i) {
    const std::uint64_t ns = random() >> (24 + random() % 20);
    ++row.fine[0].slots.at(fine_slot_of(ns));
    row.exemplars.push_back({.fine = 0,
                             .ns = ns,
                             .time_ns = static_cast<std::int64_t>(random() >> 16),
                             .labels = {{"part", i == 0 ? "\"\\\n\xff" : "lock"}, {"share", "0.83"}}});
  }
  return row;
}

void append_targets(std::string& out, Format format, HistogramForms forms, unsigned per_octave,
                    std::mt19937_64& random) {
  const BucketLayout layout(per_octave);
  std::vector<TargetSeries> series;
  std::vector<Row> rows;
  for (const Labels& labels : kTargets) {
    series.emplace_back(kFamilies, labels, layout);
    rows.push_back(labels.front().second == "idle"
                       ? Row{std::vector<Value>(40), std::vector<Histogram>(8), {}, std::vector<FineHistogram>(1), {}}
                       : any_row(random));
  }
  FamilyWriter writer({.format = format, .histograms = forms, .window = "10s", .layout = layout, .unix_ns = kBooted});
  for (std::size_t family = 0; family < kFamilies.size(); ++family) {
    writer.begin(out, kFamilies, family);
    for (std::size_t target = 0; target < series.size(); ++target) {
      writer.add(out, series[target], {.labels = proto_labels(kTargets[target]), .created = kCreated}, rows[target]);
    }
    writer.end(out);
  }
}

/// Families whose samples have labels of their own.
void append_self(std::string& out, Format format) {
  const BucketLayout layout;
  FamilyWriter writer({.format = format, .histograms = {}, .window = "10s", .layout = layout});
  const std::vector<LabelledValue> build{{{{"version", "0.1.0"}, {"revision", "a\"b\\c"}}, Value::number(1)}};
  const std::vector<LabelledValue> runs{{{{"probe", "socket"}}, Value::number(123'456'789)},
                                        {{{"probe", "bytes \xff"}}, Value::number(0.25)}};
  const std::vector<LabelledValue> fds{{{}, Value::number(17)}};
  writer.write(out, {"tacho_build_info", Type::gauge, "", "What this is.", "", {}}, build, kCreated);
  writer.write(out, {"tacho_probe_runs_total", Type::counter, "", "Runs of \"programs\",\nby probe.", "", {}}, runs,
               kCreated);
  writer.write(out, {"process_open_fds", Type::gauge, "", "Open files.", "", {}}, fds, kCreated);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view wanted = argc == 3 ? argv[1] : "";
  if (!kForms.contains(wanted)) {
    std::fputs("usage: metrics_exposition_sample text|openmetrics|protobuf|classic|native SEED\n", stderr);
    return 2;
  }
  const auto& [format, forms] = kForms.at(wanted);
  const unsigned long seed = std::stoul(argv[2]);
  std::mt19937_64 random(seed);
  std::string out;
  append_targets(out, format, forms, 1U << (seed % 3), random);
  append_self(out, format);
  append_end(out, format);
  return std::fwrite(out.data(), 1, out.size(), stdout) == out.size() ? 0 : 1;
}
