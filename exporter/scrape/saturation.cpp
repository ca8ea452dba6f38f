#include "scrape/saturation.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tacho::scrape {
namespace {

constexpr std::array kFamilies{metrics::Family{
    "tacho_saturation_ratio",
    metrics::Type::gauge,
    "",
    "How far the target is from saturation over {window}, 0 idle … 1 saturated: the larger one of the share of its "
    "CPUs "
    "that it runs on and of the utilisation at which an M/M/1 queue is as long as its queue of requests not yet read. "
    "Requests that queue inside of the target (the condition multiplexed, or a server that reads before it can work) "
    "are not seen.",
    "",
    {}}};

double gain(std::uint64_t from, std::uint64_t to) {
  return to > from ? static_cast<double>(to - from) : 0;
}

}  // namespace

std::span<const metrics::Family> saturation_families() {
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

double SaturationWatch::ratio() const {
  if (samples_.size() < 2) {
    return 0;
  }
  const SaturationSample& from = samples_.front();
  const SaturationSample& to = samples_.back();
  const auto elapsed = static_cast<double>(to.time_ns - from.time_ns);
  const double queue = utilisation_of_queue(gain(from.queue_ns, to.queue_ns) / elapsed);
  const double cpu = to.cores > 0 ? gain(from.running_ns, to.running_ns) / (elapsed * to.cores) : 0;
  return std::min(1.0, std::max(queue, cpu));
}

}  // namespace tacho::scrape
