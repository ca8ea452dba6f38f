#include "scrape/saturation.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "metrics/gain.h"

namespace tacho::scrape {
namespace {

using metrics::Family;
using metrics::Type;

constexpr std::array kFamilies{
    Family{"tacho_saturation_ratio",
           Type::gauge,
           "",
           "How far the target is from saturation over {window}, 0 idle … 1 saturated: the larger one of the share of "
           "its CPUs that it runs on and of the utilisation at which an M/M/1 queue is as long as its queue of "
           "requests not yet read. Requests that queue inside of the target (the condition multiplexed, or a server "
           "that reads before it can work) are not seen.",
           "",
           {}},
    Family{"tacho_saturation_ratio_error",
           Type::gauge,
           "",
           "Standard error of tacho_saturation_ratio as a mean over {window}: from 0.29 after the first second of a "
           "target to 0.03 after ten that are alike; more where its seconds differ.",
           "",
           {}}};

using Counter = std::optional<std::uint64_t> SaturationSample::*;

/// Variance of one second that may be anything from 0 to 1.
constexpr double kVarianceOfUnknown = 1.0 / 12;

/// A counter's mean rate and the variance of that mean.
struct Mean {
  double value = 0;
  double variance = 0;
};

/// How much a counter grew per ns, between consecutive samples and over all of them. A part that was not seen at first
/// began at 0.
std::optional<Mean> mean_of(const std::deque<SaturationSample>& samples, Counter counter) {
  if (samples.size() < 2 || !(samples.back().*counter)) {
    return {};
  }
  const auto at = [&](std::size_t i) { return (samples[i].*counter).value_or(0); };
  const auto elapsed = static_cast<double>(samples.back().time_ns - samples.front().time_ns);
  Mean mean{.value = static_cast<double>(metrics::gain(at(0), at(samples.size() - 1))) / elapsed};
  for (std::size_t i = 1; i < samples.size(); ++i) {
    const auto length = static_cast<double>(samples[i].time_ns - samples[i - 1].time_ns);
    const double off = static_cast<double>(metrics::gain(at(i - 1), at(i))) / length - mean.value;
    mean.variance += off * off * (length / elapsed) * (length / elapsed);
  }
  return mean;
}

/// @param slope of the ratio over the mean
Saturation judged(double ratio, const Mean& mean, double slope, std::size_t seconds) {
  const auto n = static_cast<double>(seconds);
  return {.ratio = std::min(1.0, ratio),
          .error = std::sqrt(mean.variance * slope * slope + kVarianceOfUnknown / (n * n))};
}

}  // namespace

std::span<const Family> saturation_families() {
  return kFamilies;
}

double utilisation_of_queue(double waiting) {
  // (√(w² + 4w) − w) / 2, in a form that does not cancel for long queues.
  return waiting <= 0 ? 0 : 2 / (1 + std::sqrt(1 + 4 / waiting));
}

void SaturationWatch::push(const SaturationSample& sample) {
  if (!samples_.empty() && sample.time_ns <= samples_.back().time_ns) {
    samples_.clear();
  }
  samples_.push_back(sample);
  while (samples_.size() > 2 && samples_[1].time_ns <= sample.time_ns - window_ns_) {
    samples_.pop_front();
  }
}

std::optional<Saturation> SaturationWatch::of_queue() const {
  const auto waiting = mean_of(samples_, &SaturationSample::queue_ns);
  if (!waiting) {
    return {};
  }
  const double ratio = utilisation_of_queue(waiting->value);
  // dρ/dLq, by the derivative of ρ² / (1 − ρ).
  const double slope = ratio > 0 ? (1 - ratio) * (1 - ratio) / (ratio * (2 - ratio)) : 0;
  return judged(ratio, *waiting, slope, samples_.size() - 1);
}

std::optional<Saturation> SaturationWatch::of_cpus() const {
  const auto running = mean_of(samples_, &SaturationSample::running_ns);
  const double cores = samples_.empty() ? 0 : samples_.back().cores;
  if (!running || cores <= 0) {
    return {};
  }
  return judged(running->value / cores, *running, 1 / cores, samples_.size() - 1);
}

std::optional<Saturation> SaturationWatch::estimate() const {
  const auto queue = of_queue();
  const auto cpus = of_cpus();
  return !queue || (cpus && cpus->ratio >= queue->ratio) ? cpus : queue;
}

}  // namespace tacho::scrape
