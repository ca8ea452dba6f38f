#include "scrape/scraper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "kernel/skipped_events.h"
#include "metrics/gain.h"
#include "metrics/proto_family.h"
#include "scrape/diagnosis.h"
#include "scrape/judgements.h"
#include "scrape/kernel_clock.h"
#include "scrape/process_metrics.h"

namespace tacho::scrape {

Style::Style(const config::Config& config)
    : window(config.window),
      run_statistics(config.run_statistics),
      layout(config.histograms.buckets_per_octave),
      forms{.classic = config.histograms.format != config::HistogramForm::native,
            .native = config.histograms.format != config::HistogramForm::classic},
      dropped(matching_families(config.metrics.drop)) {}

Scraper::Scraper(const config::Config& config, std::vector<std::unique_ptr<probes::Probe>> probes,
                 std::vector<std::string> failed, std::vector<kernel::HealthSource> objects,
                 targets::TargetTable& table)
    : probes_(std::move(probes)),
      failed_(std::move(failed)),
      sources_(std::move(objects)),
      instance_(fmt::format("{:08x}", std::random_device{}())),
      table_(table),
      style_(std::make_shared<const Style>(config)),
      targets_(table.indices()),
      objects_(std::make_shared<const std::vector<ObservedObject>>(sources_.size())),
      lost_(sources_.size()),
      limits_(config.limits) {
  set_texts();
  publish();
}

void Scraper::set_texts() {
  texts_.clear();
  for (const auto& probe : probes_) {
    texts_.push_back(std::make_shared<const metrics::SeriesText>(probe->info().families, style_->layout));
  }
  for (const Judgement& judgement : kJudgements) {
    texts_.push_back(std::make_shared<const metrics::SeriesText>(judgement.families(), style_->layout));
  }
}

std::shared_ptr<const Lines> Scraper::lines_of(const targets::Target& target, metrics::Created created) const {
  const targets::Labels& labels = target.wanted.labels;
  auto lines = std::make_shared<Lines>();
  for (const auto& text : texts_) {
    lines->series.emplace_back(text, labels);
  }
  lines->proto = {.labels = metrics::proto_labels(labels), .created = created};
  return lines;
}

void Scraper::look_after(probes::Occasion occasion) {
  for (const auto& probe : probes_) {
    const std::string_view name = probe->info().name;
    auto done = probe->look_after(occasion, kernel_now_ns());
    std::string why = done ? "" : std::move(done.error().message);
    std::string& reported = maintenance_[{name, occasion}];
    // What fails and succeeds by turns each second is reported once.
    if (why.empty() && occasion != probes::Occasion::second) {
      reported.clear();
    }
    if (!why.empty() && why != reported) {
      spdlog::warn("probe {}: {}", name, why);
      reported = std::move(why);
    }
  }
}

void Scraper::look_at_objects() {
  auto objects = std::make_shared<std::vector<ObservedObject>>();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const ObservedObject& before = (*objects_)[i];
    ObservedObject& now = objects->emplace_back(sources_[i](false), before.skipped);
    now.skipped += kernel::skipped_events(before.health.programs, now.health.programs);
    if (now.health.lost_error.empty()) {
      lost_.at(i) = lost_events(now.health);
    } else if (unreadable_.insert(i).second) {
      spdlog::warn("{}: whether it loses events is unknown, tacho_lost_events_total lacks them: {}", now.health.name,
                   now.health.lost_error);
    }
  }
  const auto is_unreadable = [](const ObservedObject& object) { return !object.health.lost_error.empty(); };
  losses_known_ = std::ranges::none_of(*objects, is_unreadable);
  objects_ = std::move(objects);
}

metrics::Losses Scraper::total_losses() const {
  metrics::Losses sum{.requests = losses_.requests};
  for (std::size_t i = 0; i < objects_->size(); ++i) {
    // What the first one loses is news of targets, which discovery makes up for.
    sum.lost += i > 0 ? lost_[i] : 0;
    sum.skipped += (*objects_)[i].skipped;
  }
  return sum;
}

void Scraper::sample() {
  look_at_objects();
  losses_ = total_losses();
  std::uint64_t requests = 0;  // since the last sample
  const std::int64_t now = kernel_now_ns();
  if (tick_ == 0) {
    first_sample_ns_ = now;
  }
  // While the program was stopped, time went on.
  tick_ = std::max(tick_ + 1, 1 + static_cast<std::uint64_t>(std::llround(seconds_since(first_sample_ns_))));
  look_after(probes::Occasion::second);
  for (const auto& kept : targets_) {
    if (!kept) {
      continue;
    }
    const std::uint64_t before = kept->requests;
    sample(*kept);
    requests += metrics::gain(before, kept->requests);
  }
  losses_.requests += requests;
  shed(now);
  for (const auto& kept : targets_) {
    if (kept) {
      find(*kept);
    }
  }
  publish();
}

void Scraper::sample(Kept& kept) const {
  const probes::Look look{kernel_now_ns(), kept.target->wanted.identity.path, false};
  probes::TargetSample sample;
  sample.time_ns = look.now_ns;
  for (const auto& each : kept.published->parts->accumulators) {
    each->tick(look, sample);
  }
  const auto& [time_ns, socket, poll, sched] = sample;
  const auto counters = [](const auto& part) { return part.counters; };
  kept.window.push({.time_ns = time_ns,
                    .socket = socket.transform(counters),
                    .poll = poll.transform(counters),
                    .threads = sched.transform(counters),
                    .losses = losses_});
  kept.requests = socket ? metrics::total(socket->duration) : 0;
  kept.past->push(tick_,
                  {.time_ns = time_ns,
                   .duration = socket ? socket->duration : metrics::FineHistogram{},
                   .queue_ns = socket ? socket->counters.queue_ns.value_or(0) : 0,
                   .idle_ns = poll ? poll->counters.ns : 0,
                   .threads = poll ? poll->threads : 0,
                   .sees_queue = !socket || socket->counters.queue_ns.has_value()},
                  wait_sums(sample));
  const ShedSeen seen = shed_seen(sample);
  kept.shed_input = shed_input(std::exchange(kept.shed_seen, seen), seen);
}

void Scraper::find(Kept& kept) const {
  auto now = std::make_shared<TargetState>(*kept.published);
  Findings& found = now->found;
  const auto samples = kept.window.samples();
  const auto highest_shed = kept.highest_shed();
  found.gauges = kept.window.gauges();
  found.conditions = conditions(samples.front(), samples.back(), found.gauges.few_samples, highest_shed);
  if (auto& lost = found.conditions.at(static_cast<std::size_t>(Condition::lost_events));
      !losses_known_ && lost == false) {
    lost.reset();
  }
  found.saturation = saturation(samples);
  found.own_time = kept.shed_seen.own;
  if (highest_shed) {
    found.shed_level = kept.shed.level();
  }
  if (const WaitHistory* waits = kept.past->waits()) {
    found.bottleneck = bottleneck(*waits);
    if (found.bottleneck) {
      found.bottlenecks |= 1U << *found.bottleneck;
    }
  }
  kept.published = std::move(now);
}

void Scraper::reconfigure(const config::Config& config) {
  const bool other_window = config.window != style_->window;
  style_ = std::make_shared<const Style>(config);
  set_texts();
  limits_ = config.limits;
  for (const auto& kept : targets_) {
    if (!kept) {
      continue;
    }
    if (other_window) {
      kept->window = metrics::Window(style_->window);
      kept->past->set_window(style_->window);
    }
    auto now = std::make_shared<TargetState>(*kept->published);
    now->lines = lines_of(*kept->target, now->lines->proto.created);
    kept->published = std::move(now);
  }
  publish();
}

void Scraper::publish() {
  auto state = std::make_shared<State>();
  for (const auto& probe : probes_) {
    state->probes.push_back(probe->info());
  }
  state->failed = failed_;
  state->instance = instance_;
  state->style = style_;
  for (const auto& kept : targets_) {
    if (kept) {
      state->targets.push_back(kept->published);
    }
  }
  state->numbers = {.live = table_.live(), .overflowed = table_.overflowed(), .shortfalls = table_.shortfalls()};
  state->objects = objects_;
  state->losses = losses_;
  state->tick = tick_;
  state->reload = reload_;
  published_.set(std::move(state));
}

void Scraper::set_reload_state(const ReloadState& state) {
  reload_ = state;
  publish();
}

std::string Scraper::scrape(metrics::Format format) {
  PageText page;
  write_page(page, format);
  return page.take();
}

}  // namespace tacho::scrape
