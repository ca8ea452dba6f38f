#include "scrape/page_writer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <optional>

#include "config/units.h"
#include "kernel/skipped_events.h"
#include "metrics/proto_family.h"
#include "scrape/diagnosis.h"
#include "scrape/judgements.h"
#include "scrape/process_metrics.h"

namespace tacho::scrape {

PageWriter::PageWriter(const Published& published, std::span<const kernel::HealthSource> objects)
    : published_(published), objects_(objects), start_(process_start()), skipped_(objects.size()) {}

PageWriter::Shown& PageWriter::shown(const TargetState& target, std::size_t probes) {
  if (shown_.size() <= target.index) {
    shown_.resize(target.index + 1);
  }
  Shown& found = shown_[target.index];
  if (found.epoch != target.epoch || found.appeared.size() != probes) {
    found = {.epoch = target.epoch, .appeared = std::vector<metrics::Appearance>(probes)};
  }
  return found;
}

metrics::PageStyle PageWriter::style(const State& state, metrics::Format format) const {
  return {.format = format,
          .histograms = state.style->forms,
          .window = config::format_duration(state.style->window),
          .layout = state.style->layout,
          .unix_ns = wall_clock_.unix_ns()};
}

void PageWriter::write_families(PageText& page, const State& state, std::span<const metrics::Family> families,
                                std::size_t series, std::span<const Rows::value_type> rows,
                                metrics::Format format) const {
  metrics::FamilyWriter writer(style(state, format));
  for (std::size_t family = 0; family < families.size(); ++family) {
    if (state.style->dropped.contains(families[family].name)) {
      continue;
    }
    writer.begin(page.end(), families, family);
    for (const auto& [target, row] : rows) {
      writer.add(page.end(), target->lines->series[series], target->lines->proto, row);
    }
    writer.end(page.end());
  }
}

std::span<const PageWriter::Rows::value_type> PageWriter::read(const State& state, std::size_t probe,
                                                               metrics::Format format) {
  std::size_t used = 0;
  for (const auto& target : state.targets) {
    if (!target->shows()) {
      continue;
    }
    if (used == rows_.size()) {
      rows_.emplace_back();
    }
    auto& [of, row] = rows_[used++];
    of = target.get();
    row.clear();
    row.reserve_as(rows_.front().second);  // all have the same families
    target->parts->accumulators[probe]->read(target->look(format != metrics::Format::prometheus_text),
                                             target->found.gauges, row);
    state.probes[probe].unseen.hide(row);
    shown(*target, state.probes.size()).appeared[probe].apply(state.probes[probe].families, row);
  }
  return std::span(rows_).first(used);
}

CollectorResult PageWriter::write_probe(PageText& page, const State& state, std::size_t number,
                                        metrics::Format format) {
  const probes::ProbeInfo& probe = state.probes[number];
  const std::int64_t start = kernel_now_ns();
  const std::size_t before = page.size();
  CollectorResult result{.collector = probe.name};
  try {
    write_families(page, state, probe.families, number, read(state, number, format), format);
  } catch (const std::exception& error) {
    spdlog::error("probe {}: {}", probe.name, error.what());
    page.cut(before);
    result.success = false;
  }
  result.seconds = seconds_since(start);
  return result;
}

void PageWriter::write_judgement(PageText& page, const State& state, std::size_t number, metrics::Format format) const {
  const Judgement& judgement = kJudgements.at(number);
  Rows rows;
  for (const auto& target : state.targets) {
    if (judgement.stays ? target->shows() : target->is_judged()) {
      if (auto row = judgement.row(target->found)) {
        rows.emplace_back(target.get(), std::move(*row));
      }
    }
  }
  write_families(page, state, judgement.families(), state.probes.size() + number, rows, format);
}

std::vector<ObservedObject> PageWriter::look_at_objects(const std::vector<ObservedObject>& sampled) {
  std::vector<ObservedObject> all;
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    ObservedObject& object = all.emplace_back(objects_[i](true), 0);
    // In steps of different length they are not the same: what was told once is not taken back.
    skipped_[i] = std::max(
        skipped_[i], sampled[i].skipped + kernel::skipped_events(sampled[i].health.programs, object.health.programs));
    object.skipped = skipped_[i];
  }
  return all;
}

void PageWriter::write_self(std::string& out, const State& state, std::vector<CollectorResult> results,
                            metrics::Format format) {
  metrics::FamilyWriter writer(style(state, format));
  const auto append = [&](const std::vector<SelfFamily>& families) {
    for (const auto& [family, samples] : families) {
      if (!state.style->dropped.contains(family->name)) {
        writer.write(out, *family, samples, start_);
      }
    }
  };
  const auto web_source = web_.get();
  const WebCounters web = web_source ? web_source() : WebCounters{};
  append(program_metrics(state.reload, web.dropped_log_lines));
  std::vector<const targets::DesiredTarget*> reported;
  for (const auto& target : state.targets) {
    if (target->shows()) {
      reported.push_back(target->wanted.get());
    }
  }
  append(target_metrics(reported, state.numbers));
  append(object_metrics(look_at_objects(*state.objects), state.failed, state.style->run_statistics));
  for (const std::string& name : state.failed) {
    results.push_back({.collector = name, .seconds = 0, .success = false});
  }
  append(collector_metrics(results));
  if (web_source) {
    append(web_metrics(web));
  }
  ServingCost serving{.cpu_seconds = web.cpu_seconds};
  if (const auto rights = rights_.get()) {
    const std::vector<process::Rights> processes = rights();
    append(rights_metrics(processes));
    const auto found = std::ranges::find(processes, "web", &process::Rights::process);
    serving.memory_bytes = found == processes.end() ? 0 : static_cast<double>(found->memory_bytes);
  }
  append(process_metrics(serving));
}

void PageWriter::write(PageText& page, metrics::Format format) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<const State> state = published_.get();
  wall_clock_.update();
  std::vector<CollectorResult> results;
  results.reserve(state->probes.size());
  for (std::size_t i = 0; i < state->probes.size(); ++i) {
    results.push_back(write_probe(page, *state, i, format));
  }
  for (std::size_t i = 0; i < kJudgements.size(); ++i) {
    write_judgement(page, *state, i, format);
  }
  rows_.resize(std::min(rows_.size(), state->targets.size()));
  write_self(page.end(), *state, std::move(results), format);
  metrics::append_end(page.end(), format);
  page.finish();
}

std::vector<process::Rights> PageWriter::processes() const {
  const auto rights = rights_.get();
  return rights ? rights() : std::vector<process::Rights>{};
}

}  // namespace tacho::scrape
