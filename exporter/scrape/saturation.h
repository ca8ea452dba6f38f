#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <span>

#include "metrics/family.h"

namespace tacho::scrape {

/// Family `tacho_saturation_ratio`.
std::span<const metrics::Family> saturation_families();

/// The counters behind the saturation of one target, cumulative, at one time.
struct SaturationSample {
  std::int64_t time_ns = 0;      ///< of any monotonic clock
  std::uint64_t queue_ns = 0;    ///< time that requests waited for their first read
  std::uint64_t running_ns = 0;  ///< thread time on CPUs
  double cores = 0;              ///< CPUs that the target may use; not cumulative; 0: not known
};

/// The utilisation ρ at which an M/M/1 queue has `waiting` requests waiting on average: Lq = ρ² / (1 − ρ) solved for ρ
/// (Kleinrock, Queueing Systems I, 3.2). 0 … 1, about √waiting for few, 1 − 1/waiting for many.
double utilisation_of_queue(double waiting);

/// How far a target is from saturation, over the window of the gauges: the larger one of
///   - ρ of an M/M/1 queue as long as the target's: the mean number of requests that have arrived and are not read yet,
///     Lq = Δ Σ queue time / T (Little's law), whatever makes them wait;
///   - the share of its CPUs that it runs on, Δ running time / (T · cores), which also sees work without requests.
/// Nothing is calibrated. Why this one, how well it tells saturation, and when it lies: tests/validation/README.md.
class SaturationWatch {
 public:
  explicit SaturationWatch(std::chrono::nanoseconds window) : window_ns_(window.count()) {}

  void push(const SaturationSample& sample);

  /// 0 idle … 1 saturated.
  [[nodiscard]] double ratio() const;

 private:
  std::int64_t window_ns_;
  std::deque<SaturationSample> samples_;
};

}  // namespace tacho::scrape
