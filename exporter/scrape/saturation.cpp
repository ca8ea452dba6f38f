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
           "Saturation of the target over {window}, 0 idle … 1 saturated. It is the larger of two values: the share of "
           "its CPUs that the target runs on, and the utilisation at which an M/M/1 queue is as long as its queue of "
           "unread requests. Requests that queue inside the target (the condition multiplexed, or a server that reads "
           "before it can work) are not visible.",
           "",
           {}},
    Family{"tacho_saturation_ratio_error",
           Type::gauge,
           "",
           "Standard error of tacho_saturation_ratio as a mean over {window}: 0.29 after the first second of a target, "
           "0.03 after ten equal seconds, more where its seconds differ.",
           "",
           {}}};

using Samples = std::span<const metrics::WindowSample>;
using Counter = std::optional<std::uint64_t> (*)(const metrics::WindowSample&);

std::optional<std::uint64_t> queue_ns(const metrics::WindowSample& sample) {
  return sample.socket ? sample.socket->queue_ns : std::nullopt;
}

std::optional<std::uint64_t> running_ns(const metrics::WindowSample& sample) {
  return sample.threads ? sample.threads->running_ns : std::nullopt;
}

/// Variance of one second that may be anything from 0 to 1.
constexpr double kVarianceOfUnknown = 1.0 / 12;

/// A counter's mean rate and the variance of that mean.
struct Mean {
  double value = 0;
  double variance = 0;
};

/// How much a counter grew per ns, between consecutive samples and over all of them. A part that was not seen at first
/// began at 0.
std::optional<Mean> mean_of(Samples samples, Counter counter) {
  if (samples.size() < 2 || !counter(samples.back())) {
    return {};
  }
  const auto at = [&](std::size_t i) { return counter(samples[i]).value_or(0); };
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
Saturation judged(double ratio, const Mean& mean, double slope, Samples samples) {
  const auto n = static_cast<double>(samples.back().number - samples.front().number);  // seconds that were looked at
  return {.ratio = std::min(1.0, ratio),
          .error = std::sqrt(mean.variance * slope * slope + kVarianceOfUnknown / (n * n))};
}

std::optional<Saturation> of_queue(Samples samples) {
  const auto waiting = mean_of(samples, queue_ns);
  if (!waiting) {
    return {};
  }
  const double ratio = utilisation_of_queue(waiting->value);
  // dρ/dLq, by the derivative of ρ² / (1 − ρ).
  const double slope = ratio > 0 ? (1 - ratio) * (1 - ratio) / (ratio * (2 - ratio)) : 0;
  return judged(ratio, *waiting, slope, samples);
}

std::optional<Saturation> of_cpus(Samples samples) {
  const auto running = mean_of(samples, running_ns);
  if (!running || samples.back().threads->cores <= 0) {
    return {};
  }
  const double cores = samples.back().threads->cores;
  return judged(running->value / cores, *running, 1 / cores, samples);
}

}  // namespace

std::span<const Family> saturation_families() {
  return kFamilies;
}

double utilisation_of_queue(double waiting) {
  // (√(w² + 4w) − w) / 2, in a form that does not cancel for long queues.
  return waiting <= 0 ? 0 : 2 / (1 + std::sqrt(1 + 4 / waiting));
}

std::optional<Saturation> saturation(Samples samples) {
  const auto queue = of_queue(samples);
  const auto cpus = of_cpus(samples);
  return !queue || (cpus && cpus->ratio >= queue->ratio) ? cpus : queue;
}

}  // namespace tacho::scrape
