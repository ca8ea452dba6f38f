// What a scrape costs per series line: bench_metrics [--benchmark_filter=…]. Budgets (design.md §12): at most 40 ns a
// line in the fast path, 100 000 lines in at most 10 ms.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "metrics/exposition.h"
#include "metrics/family_writer.h"
#include "metrics/series.h"
#include "metrics/window.h"

namespace {

using namespace tacho::metrics;

constexpr std::array<std::string_view, 2> kDirections = {"send", "receive"};
constexpr std::array<std::string_view, 4> kOutcomes = {"ready", "timeout", "nonblocking", "error"};

/// The mixture of the socket and poll probes: 15 numbers and 8 histograms a target.
constexpr std::array<Family, 12> kFamilies = {{
    {"tacho_socket_operations_total", Type::counter, "", "h", "direction", kDirections},
    {"tacho_socket_bytes_total", Type::counter, "bytes", "h", "direction", kDirections},
    {"tacho_socket_interval_seconds_total", Type::counter, "seconds", "h", "direction", kDirections},
    {"tacho_socket_interval_seconds_squared_total", Type::counter, "seconds_squared", "h", "direction", kDirections},
    {"tacho_inter_syscall_variance_seconds_squared", Type::gauge, "seconds_squared", "h", "direction", kDirections},
    {"tacho_inter_syscall_cv2", Type::gauge, "", "h", "direction", kDirections},
    {"tacho_observed_rps", Type::gauge, "", "h", "", {}},
    {"tacho_requests_total", Type::counter, "", "h", "", {}},
    {"tacho_idle_seconds_total", Type::counter, "seconds", "h", "", {}},
    {"tacho_poll_duration_seconds", Type::histogram, "seconds", "h", "outcome", kOutcomes},
    {"tacho_request_duration_seconds", Type::histogram, "seconds", "h", "", {}, true},
    {"tacho_dependency_duration_seconds", Type::histogram, "seconds", "h", "peer", {}},
}};

Labels labels_of(std::size_t target) {
  return {{"target", "web-" + std::to_string(target)},
          {"namespace", "production"},
          {"pod", "web-7d4f9c6b5d-x2x7" + std::to_string(target % 10)},
          {"container", "nginx"}};
}

Histogram busy_histogram(std::mt19937_64& random) {
  Histogram histogram;
  for (std::size_t slot = 20; slot < 60; ++slot) {
    histogram.slots.at(slot) = random() % 1'000'000;
  }
  histogram.sum_ns = random() >> 20;
  return histogram;
}

Row busy_row(std::mt19937_64& random) {
  Row row;
  for (int i = 0; i < 4; ++i) {
    row.values.push_back(Value::count(random() >> 24));
  }
  row.values.push_back(Value::nanoseconds(static_cast<std::int64_t>(random() >> 8)));
  row.values.push_back(Value::nanoseconds(static_cast<std::int64_t>(random() >> 8)));
  for (int i = 0; i < 7; ++i) {
    row.values.push_back(Value::number(static_cast<double>(random()) * 1e-17));
  }
  row.values.push_back(Value::count(random() >> 24));
  row.values.push_back(Value::nanoseconds(static_cast<std::int64_t>(random() >> 8)));
  for (int i = 0; i < 4; ++i) {
    row.histograms.push_back(busy_histogram(random));
  }
  row.fine.resize(1);
  for (std::size_t slot = 0; slot < row.histograms[0].slots.size(); ++slot) {
    row.fine[0].slots.at(std::min(4 * slot, row.fine[0].slots.size() - 1)) = row.histograms[0].slots[slot];
  }
  for (const char* peer : {"10.1.2.3:5432", "other", "10.1.2.3:6379"}) {
    row.dynamic.push_back({kFamilies.size() - 1, peer, {}, busy_histogram(random)});
  }
  return row;
}

double cpu_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

/// CPU time per line, which benchmark::Counter cannot show in nanoseconds.
class Report {
 public:
  explicit Report(benchmark::State& state) : state_(state), start_(cpu_nanoseconds()) {}

  void finish(std::size_t lines, std::size_t bytes) {
    const auto written = static_cast<double>(lines) * static_cast<double>(state_.iterations());
    state_.counters["ns_per_line"] = (cpu_nanoseconds() - start_) / written;
    state_.counters["lines"] = static_cast<double>(lines);
    state_.counters["bytes"] = static_cast<double>(bytes);
  }

 private:
  benchmark::State& state_;
  double start_;
};

/// One family over many targets, as a scrape goes about it.
void fast_path(benchmark::State& state, std::size_t first, std::size_t last, Format format = Format::openmetrics,
               HistogramForms forms = {}) {
  std::mt19937_64 random(1);
  const BucketLayout layout;
  std::vector<TargetSeries> series;
  std::vector<ProtoTarget> targets;
  std::vector<Row> rows;
  std::size_t memory = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(state.range(0)); ++i) {
    series.emplace_back(kFamilies, labels_of(i), layout);
    targets.push_back({.labels = proto_labels(labels_of(i)), .created = std::chrono::system_clock::now()});
    rows.push_back(busy_row(random));
    memory += series.back().memory();
  }
  std::string out;
  FamilyWriter writer({.format = format, .histograms = forms, .window = "10s", .layout = layout});
  std::size_t lines = 0;  // of the text form, whatever is written
  for (std::size_t family = first; family < last; ++family) {
    for (std::size_t target = 0; target < series.size(); ++target) {
      out.clear();
      series[target].append(out, family, rows[target]);
      lines += static_cast<std::size_t>(std::ranges::count(out, '\n'));
    }
  }
  Report report(state);
  while (state.KeepRunning()) {
    out.clear();
    for (std::size_t family = first; family < last; ++family) {
      writer.begin(out, kFamilies, family);
      for (std::size_t target = 0; target < series.size(); ++target) {
        writer.add(out, series[target], targets[target], rows[target]);
      }
      writer.end(out);
    }
    benchmark::DoNotOptimize(out.data());
  }
  report.finish(lines, out.size());
  state.counters["prefix_bytes_per_target"] = static_cast<double>(memory) / static_cast<double>(state.range(0));
  state.counters["static_lines_per_target"] = static_cast<double>(series.front().lines());
}

void all_families(benchmark::State& state) {
  fast_path(state, 0, kFamilies.size());
}
void protobuf_both(benchmark::State& state) {
  fast_path(state, 0, kFamilies.size(), Format::protobuf);
}
void protobuf_classic(benchmark::State& state) {
  fast_path(state, 0, kFamilies.size(), Format::protobuf, {.classic = true, .native = false});
}
void protobuf_native(benchmark::State& state) {
  fast_path(state, 0, kFamilies.size(), Format::protobuf, {.classic = false, .native = true});
}
void counts(benchmark::State& state) {
  fast_path(state, 0, 2);
}
void seconds(benchmark::State& state) {
  fast_path(state, 2, 3);
}
void real_numbers(benchmark::State& state) {
  fast_path(state, 4, 7);
}
void histograms(benchmark::State& state) {
  fast_path(state, 9, 11);
}
void dynamic_histograms(benchmark::State& state) {
  fast_path(state, 11, 12);
}

void build_series(benchmark::State& state) {
  const BucketLayout layout;
  const Labels labels = labels_of(1);
  while (state.KeepRunning()) {
    const TargetSeries series(kFamilies, labels, layout);
    benchmark::DoNotOptimize(series.memory());
  }
}

void labels_of_their_own(benchmark::State& state) {
  constexpr Family kAttached{"tacho_probe_attached", Type::gauge, "", "h", "", {}};
  std::vector<LabelledValue> samples;
  for (int i = 0; i < 100; ++i) {
    samples.push_back({{{"probe", "socket"}, {"hook", "sock_send_length_" + std::to_string(i)}, {"method", "tp_btf"}},
                       Value::number(1)});
  }
  const BucketLayout layout;
  FamilyWriter writer({.format = Format::openmetrics, .histograms = {}, .window = "10s", .layout = layout});
  std::string out;
  Report report(state);
  while (state.KeepRunning()) {
    out.clear();
    writer.write(out, kAttached, samples, {});
    benchmark::DoNotOptimize(out.data());
  }
  report.finish(samples.size(), out.size());
}

void window_push_and_read(benchmark::State& state) {
  Window window(std::chrono::seconds(10));
  WindowSample sample;
  sample.socket.emplace();
  while (state.KeepRunning()) {
    sample.time_ns += 1'000'000'000;
    sample.socket->direction[0] += {100, 100, 100, 0, 1'000'000'000, 0, 20'000'000'000'000'000};
    window.push(sample);
    benchmark::DoNotOptimize(window.gauges());
  }
}

BENCHMARK(all_families)->Arg(10)->Arg(36)->Arg(360)->Arg(1000)->Unit(benchmark::kMicrosecond);
BENCHMARK(protobuf_both)->Arg(10)->Arg(360)->Arg(1000)->Unit(benchmark::kMicrosecond);
BENCHMARK(protobuf_classic)->Arg(1000)->Unit(benchmark::kMicrosecond);
BENCHMARK(protobuf_native)->Arg(1000)->Unit(benchmark::kMicrosecond);
BENCHMARK(counts)->Arg(100)->Unit(benchmark::kMicrosecond);
BENCHMARK(seconds)->Arg(100)->Unit(benchmark::kMicrosecond);
BENCHMARK(real_numbers)->Arg(100)->Unit(benchmark::kMicrosecond);
BENCHMARK(histograms)->Arg(100)->Unit(benchmark::kMicrosecond);
BENCHMARK(dynamic_histograms)->Arg(100)->Unit(benchmark::kMicrosecond);
BENCHMARK(build_series)->Unit(benchmark::kMicrosecond);
BENCHMARK(labels_of_their_own)->Unit(benchmark::kMicrosecond);
BENCHMARK(window_push_and_read)->Unit(benchmark::kNanosecond);

}  // namespace
