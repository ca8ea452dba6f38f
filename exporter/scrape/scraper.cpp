#include "scrape/scraper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "metrics/gain.h"
#include "metrics/proto_family.h"
#include "scrape/diagnosis.h"
#include "scrape/kernel_clock.h"
#include "scrape/process_metrics.h"

namespace tacho::scrape {
Scraper::Scraper(const config::Config& config, std::vector<std::unique_ptr<probes::Probe>> probes,
                 std::vector<std::string> failed, std::vector<kernel::HealthSource> objects,
                 targets::TargetTable& table, std::mutex& mutex)
    : window_(config.window),
      run_statistics_(config.run_statistics),
      start_(process_start()),
      state_{.probes = std::move(probes),
             .failed = std::move(failed),
             .targets = std::vector<std::unique_ptr<TargetState>>(table.indices()),
             .objects = std::vector<ObservedObject>(objects.size()),
             .losses = {},
             .instance = fmt::format("{:08x}", std::random_device{}())},
      sources_(std::move(objects)),
      table_(table),
      mutex_(mutex),
      skipped_(sources_.size()) {
  set_exposition(config);
}

void Scraper::set_exposition(const config::Config& config) {
  using Form = config::HistogramForm;
  layout_ = std::make_unique<metrics::BucketLayout>(config.histograms.buckets_per_octave);
  forms_ = {.classic = config.histograms.format != Form::native, .native = config.histograms.format != Form::classic};
  dropped_ = matching_families(config.metrics.drop);
}

metrics::PageStyle Scraper::style(metrics::Format format) const {
  return {.format = format,
          .histograms = forms_,
          .window = window_text(),
          .layout = *layout_,
          .unix_ns = wall_clock_.unix_ns()};
}

void Scraper::build_series(TargetState& runtime) const {
  runtime.series.clear();
  for (const auto& probe : state_.probes) {
    runtime.series.emplace_back(probe->info().families, runtime.target->wanted.labels, *layout_);
  }
  for (const Judgement& judgement : kJudgements) {
    runtime.series.emplace_back(judgement.families(), runtime.target->wanted.labels, *layout_);
  }
}

void Scraper::look_after(probes::Occasion occasion) {
  for (const auto& probe : state_.probes) {
    const std::string_view name = probe->info().name;
    if (auto done = probe->look_after(occasion, kernel_now_ns());
        !done && (occasion != probes::Occasion::second || maintenance_.insert(name).second)) {
      spdlog::warn("probe {}: {}", name, done.error().message);
    }
  }
}

void Scraper::look_at_objects(bool with_maps) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    state_.objects[i].health = sources_[i](with_maps);
    state_.objects[i].skipped = skipped_[i].update(state_.objects[i].health.programs);
  }
}

metrics::Losses Scraper::total_losses() const {
  metrics::Losses sum{.requests = state_.losses.requests};
  for (std::size_t i = 0; i < state_.objects.size(); ++i) {
    // What the first one loses is news of targets, which discovery makes up for.
    sum.lost += i > 0 ? lost_events(state_.objects[i].health) : 0;
    sum.skipped += state_.objects[i].skipped;
  }
  return sum;
}

void Scraper::sample() {
  const std::lock_guard lock(mutex_);
  look_at_objects(false);
  state_.losses = total_losses();
  std::uint64_t requests = 0;  // since the last sample
  const std::int64_t now = kernel_now_ns();
  if (state_.tick == 0) {
    first_sample_ns_ = now;
  }
  // While the program was stopped, time went on.
  state_.tick =
      std::max(state_.tick + 1, 1 + static_cast<std::uint64_t>(std::llround(seconds_since(first_sample_ns_))));
  look_after(probes::Occasion::second);
  for (const auto& runtime : state_.targets) {
    if (!runtime) {
      continue;
    }
    const std::uint64_t before = runtime->requests;
    keep(*runtime, state_.sample(*runtime, false));
    requests += metrics::gain(before, runtime->requests);
  }
  state_.losses.requests += requests;
}

void Scraper::keep(TargetState& runtime, const probes::TargetSample& sample) const {
  const auto& [time_ns, socket, poll, sched] = sample;
  const auto counters = [](const auto& part) { return part.counters; };
  runtime.window.push({.time_ns = time_ns,
                       .socket = socket.transform(counters),
                       .poll = poll.transform(counters),
                       .threads = sched.transform(counters),
                       .losses = state_.losses});
  runtime.history.push(state_.tick, {.time_ns = time_ns,
                                     .duration = socket ? socket->duration : metrics::FineHistogram{},
                                     .queue_ns = socket ? socket->counters.queue_ns.value_or(0) : 0,
                                     .idle_ns = poll ? poll->counters.ns : 0,
                                     .threads = poll ? poll->threads : 0});
  runtime.requests = socket ? metrics::total(socket->duration) : 0;
  runtime.own_time = own_time(sample);
  auto waits = wait_sums(sample);
  if (!waits) {
    return;
  }
  if (!runtime.waits) {
    runtime.waits = std::make_unique<WaitHistory>(window_);
  }
  runtime.waits->push(std::move(*waits));
  runtime.bottleneck = bottleneck(*runtime.waits);
  if (runtime.bottleneck) {
    runtime.bottlenecks |= 1U << *runtime.bottleneck;
  }
}

void Scraper::reconfigure(const config::Config& config) {
  const std::lock_guard lock(mutex_);
  const bool other_window = config.window != window_;
  window_ = config.window;
  const auto layout = std::move(layout_);  // series refer to it until they are built again
  set_exposition(config);
  for (const auto& runtime : state_.targets) {
    if (!runtime) {
      continue;
    }
    if (other_window) {
      runtime->window = metrics::Window(window_);
      if (runtime->waits) {
        runtime->waits->set_window(window_);
      }
    }
    build_series(*runtime);
  }
}

ReloadState Scraper::reload_state() {
  const std::lock_guard lock(mutex_);
  return reload_;
}

void Scraper::observe_web(std::function<WebCounters()> counters) {
  const std::lock_guard lock(mutex_);
  web_ = std::move(counters);
}

void Scraper::observe_processes(std::function<std::vector<process::Rights>()> rights) {
  const std::lock_guard lock(mutex_);
  rights_ = std::move(rights);
}

std::vector<process::Rights> Scraper::processes() {
  const std::lock_guard lock(mutex_);
  return rights_ ? rights_() : std::vector<process::Rights>{};
}

void Scraper::set_reload_state(const ReloadState& state) {
  const std::lock_guard lock(mutex_);
  reload_ = state;
}

}  // namespace tacho::scrape
