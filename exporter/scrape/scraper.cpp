#include "scrape/scraper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernel/statistics.h"
#include "metrics/gain.h"
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

metrics::Losses Scraper::total_losses() const {
  metrics::Losses sum{.requests = losses_.requests};
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
    const std::uint64_t before = runtime->requests;
    keep(*runtime, sample(*runtime, false));
    requests += metrics::gain(before, runtime->requests);
  }
  losses_.requests += requests;
}

probes::TargetSample Scraper::sample(const Runtime& runtime, bool in_detail) const {
  const probes::Look look = runtime.look(in_detail);
  probes::TargetSample sample;
  sample.time_ns = look.now_ns;
  for (const auto& probe : probes_) {
    probe->sample(look, sample);
  }
  return sample;
}

void Scraper::keep(Runtime& runtime, const probes::TargetSample& sample) const {
  const auto& [time_ns, socket, poll, sched] = sample;
  const auto counters = [](const auto& part) { return part.counters; };
  runtime.window.push({.time_ns = time_ns,
                       .socket = socket.transform(counters),
                       .poll = poll.transform(counters),
                       .threads = sched.transform(counters),
                       .losses = losses_});
  runtime.history.push(tick_, {.time_ns = time_ns,
                               .duration = socket ? socket->duration : metrics::FineHistogram{},
                               .queue_ns = socket ? socket->counters.queue_ns.value_or(0) : 0,
                               .idle_ns = poll ? poll->counters.ns : 0,
                               .threads = poll ? poll->threads : 0});
  runtime.requests = socket ? metrics::total(socket->duration) : 0;
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
  for (const auto& runtime : runtimes_) {
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
