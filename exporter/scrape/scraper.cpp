#include "scrape/scraper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernel/statistics.h"
#include "metrics/proto_family.h"
#include "scrape/kernel_clock.h"

namespace tacho::scrape {
Scraper::Scraper(const config::Config& config, std::vector<std::unique_ptr<probes::Probe>> probes,
                 std::vector<std::string> failed, const kernel::BpfObject& targets_object, targets::TargetTable& table,
                 std::mutex& mutex)
    : window_(config.window),
      run_statistics_(config.run_statistics),
      start_(process_start()),
      probes_(std::move(probes)),
      failed_(std::move(failed)),
      targets_object_(targets_object),
      table_(table),
      mutex_(mutex),
      runtimes_(table.indices()),
      instance_(fmt::format("{:08x}", std::random_device{}())) {
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

void Scraper::build_series(Runtime& runtime) const {
  runtime.series.clear();
  for (const auto& probe : probes_) {
    runtime.series.emplace_back(probe->families(), runtime.target->wanted.labels, *layout_);
  }
  for (const Judgement& judgement : kJudgements) {
    runtime.series.emplace_back(judgement.families(), runtime.target->wanted.labels, *layout_);
  }
}

void Scraper::adopt() {
  for (const auto& probe : probes_) {
    if (auto done = probe->adopt(); !done) {
      spdlog::warn("probe {}: {}", probe->name(), done.error().message);
    }
  }
}

void Scraper::find_missed() {
  for (const auto& probe : probes_) {
    if (auto done = probe->find_missed(); !done) {
      spdlog::warn("probe {}: {}", probe->name(), done.error().message);
    }
  }
}

void Scraper::count_skipped() {
  const auto all = objects();
  skipped_.resize(all.size());
  skipped_so_far_.resize(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    skipped_so_far_[i] = skipped_[i].update(kernel::program_statistics(*all[i]));
  }
}

Losses Scraper::total_losses() const {
  Losses sum{.requests = losses_.requests};
  for (const auto& probe : probes_) {
    sum.lost += lost_events(probe->object());
  }
  for (const std::uint64_t events : skipped_so_far_) {
    sum.skipped += events;
  }
  return sum;
}

void Scraper::maintain() {
  for (const auto& probe : probes_) {
    if (auto done = probe->maintain(kernel_now_ns()); !done && maintenance_.insert(probe->name()).second) {
      spdlog::warn("probe {}: {}", probe->name(), done.error().message);
    }
  }
}

void Scraper::sample() {
  const std::lock_guard lock(mutex_);
  count_skipped();
  losses_ = total_losses();
  std::uint64_t requests = 0;  // since the last sample
  const std::int64_t now = kernel_now_ns();
  if (tick_ == 0) {
    first_sample_ns_ = now;
  }
  // While the program was stopped, time went on.
  tick_ = std::max(tick_ + 1, 1 + static_cast<std::uint64_t>(std::llround(seconds_since(first_sample_ns_))));
  maintain();
  for (const auto& runtime : runtimes_) {
    if (!runtime) {
      continue;
    }
    const std::uint32_t index = runtime->target->ref.index;
    metrics::WindowSample sample;
    probes::Activity activity;
    sample.time_ns = kernel_now_ns();
    for (const auto& probe : probes_) {
      // A container that comes back under the same labels has another cgroup.
      probe->locate_target(index, runtime->target->wanted.identity.path);
      probe->sample(index, sample.time_ns, sample);
      probe->count(index, sample.time_ns, activity);
    }
    follow_waits(*runtime, sample.time_ns, activity);
    const std::uint64_t answered = metrics::total(activity.duration);
    requests += answered - std::min(runtime->requests, answered);
    runtime->requests = answered;
    runtime->window.push(sample);
    runtime->conditions.push(sample.time_ns, activity.conditions, losses_);
    runtime->saturation.push({.time_ns = sample.time_ns,
                              .queue_ns = activity.queue_ns,
                              .running_ns = activity.running_ns,
                              .cores = activity.cpu.cores});
    runtime->history.push(tick_, {.time_ns = sample.time_ns,
                                  .duration = activity.duration,
                                  .queue_ns = activity.queue_ns.value_or(0),
                                  .idle_ns = sample.poll_ns,
                                  .threads = activity.threads});
  }
  losses_.requests += requests;
}

void Scraper::follow_waits(Runtime& runtime, std::int64_t now_ns, const probes::Activity& activity) const {
  auto sums = wait_sums(now_ns, activity);
  if (!sums) {
    return;
  }
  if (!runtime.waits) {
    runtime.waits = std::make_unique<WaitHistory>(window_);
  }
  runtime.waits->push(std::move(*sums));
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
  for (const auto& runtime : runtimes_) {
    if (!runtime) {
      continue;
    }
    if (other_window) {
      runtime->window = metrics::Window(window_);
      runtime->conditions = ConditionWatch(window_);
      runtime->saturation = SaturationWatch(window_);
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

std::vector<const kernel::BpfObject*> Scraper::objects() const {
  std::vector<const kernel::BpfObject*> all{&targets_object_};
  for (const auto& probe : probes_) {
    all.push_back(&probe->object());
  }
  return all;
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
