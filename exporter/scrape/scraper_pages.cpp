#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <exception>

#include "config/units.h"
#include "metrics/prometheus_families.h"
#include "metrics/proto_family.h"
#include "scrape/diagnosis.h"
#include "scrape/kernel_clock.h"
#include "scrape/own_time.h"
#include "scrape/process_metrics.h"
#include "scrape/saturation.h"
#include "scrape/scraper.h"

// Expositions: the families of each probe, what is judged from samples, what is known about tacho itself.

namespace tacho::scrape {
std::string Scraper::window_text() const {
  return config::format_duration(window_);
}

void Scraper::write_families(PageText& page, std::span<const metrics::Family> families, std::size_t series,
                             const Rows& rows, metrics::Format format) const {
  metrics::FamilyWriter writer(style(format));
  for (std::size_t family = 0; family < families.size(); ++family) {
    if (dropped_.contains(families[family].name)) {
      continue;
    }
    writer.begin(page.end(), families, family);
    for (const auto& [runtime, row] : rows) {
      writer.add(page.end(), runtime->series[series], runtime->proto, row);
    }
    writer.end(page.end());
  }
}

void Scraper::write_probe(PageText& page, std::size_t number, metrics::Format format, CollectorResult& result) {
  probes::Probe& probe = *state_.probes[number];
  const std::int64_t start = kernel_now_ns();
  const std::size_t before = page.size();
  result.collector = probe.info().name;
  try {
    Rows rows;
    for (const auto& runtime : state_.targets) {
      if (shows(runtime)) {
        rows.emplace_back(runtime.get(), metrics::Row{});
        probe.read(runtime->look(format != metrics::Format::prometheus_text), runtime->window.gauges(),
                   rows.back().second);
        runtime->appeared.at(number).apply(probe.info().families, rows.back().second);
      }
    }
    write_families(page, probe.info().families, number, rows, format);
  } catch (const std::exception& error) {
    spdlog::error("probe {}: {}", probe.info().name, error.what());
    page.cut(before);
    result.success = false;
  }
  result.seconds = seconds_since(start);
}

const std::array<Scraper::Judgement, 4> Scraper::kJudgements{{
    {saturation_families,
     [](const TargetState& runtime) -> std::optional<metrics::Row> {
       const auto estimate = saturation(runtime.window.samples());
       if (!estimate) {
         return {};
       }
       metrics::Row row;
       row.values = {metrics::Value::number(estimate->ratio), metrics::Value::number(estimate->error)};
       return row;
     }},
    {bottleneck_families,
     [](const TargetState& runtime) -> std::optional<metrics::Row> {
       if (runtime.bottlenecks == 0) {
         return {};
       }
       return bottleneck_row(runtime.bottleneck, runtime.bottlenecks);
     }},
    {condition_families,
     [](const TargetState& runtime) -> std::optional<metrics::Row> {
       metrics::Row row;
       for (const std::optional<bool>& on : runtime.conditions()) {
         row.values.push_back(on ? metrics::Value::count(*on ? 1 : 0) : metrics::Value::absent());
       }
       return row;
     }},
    {overhead_families,
     [](const TargetState& runtime) -> std::optional<metrics::Row> { return overhead_row(runtime.own_time); }, true},
}};

void Scraper::write_judgement(PageText& page, std::size_t number, metrics::Format format) {
  const Judgement& judgement = kJudgements.at(number);
  const std::span<const metrics::Family> families = judgement.families();
  Rows rows;
  for (const auto& runtime : state_.targets) {
    if (judgement.stays ? shows(runtime) : is_judged(runtime)) {
      if (auto row = judgement.row(*runtime)) {
        rows.emplace_back(runtime.get(), std::move(*row));
      }
    }
  }
  write_families(page, families, state_.probes.size() + number, rows, format);
}

void Scraper::write_self(std::string& out, metrics::Format format) {
  const auto append = [&](std::vector<prometheus::MetricFamily> families) {
    std::erase_if(families, [this](const auto& family) { return dropped_.contains(family.name); });
    if (format == metrics::Format::protobuf) {
      metrics::append_proto_families(out, families, start_);
    } else {
      metrics::append_families(out, families, format);
    }
  };
  look_at_objects(true);
  const WebCounters web = web_ ? web_() : WebCounters{};
  append(program_metrics(reload_, web.dropped_log_lines));
  append(target_metrics(table_));
  append(object_metrics(state_.objects, state_.failed, run_statistics_));
  std::vector<CollectorResult> results = results_;
  for (const std::string& name : state_.failed) {
    results.push_back({.collector = name, .seconds = 0, .success = false});
  }
  append(collector_metrics(results));
  if (web_) {
    append(web_metrics(web));
  }
  ServingCost serving{.cpu_seconds = web.cpu_seconds};
  if (rights_) {
    const std::vector<process::Rights> processes = rights_();
    append(rights_metrics(processes));
    const auto found = std::ranges::find(processes, "web", &process::Rights::process);
    serving.memory_bytes = found == processes.end() ? 0 : static_cast<double>(found->memory_bytes);
  }
  append(process_metrics(serving));
}

void Scraper::write_page(PageText& page, metrics::Format format) {
  const std::lock_guard lock(mutex_);
  results_.assign(state_.probes.size(), {});
  wall_clock_.update();
  for (std::size_t i = 0; i < state_.probes.size(); ++i) {
    write_probe(page, i, format, results_[i]);
  }
  for (std::size_t i = 0; i < kJudgements.size(); ++i) {
    write_judgement(page, i, format);
  }
  write_self(page.end(), format);
  metrics::append_end(page.end(), format);
  page.finish();
}

std::string Scraper::scrape(metrics::Format format) {
  PageText page;
  write_page(page, format);
  return page.take();
}

}  // namespace tacho::scrape
