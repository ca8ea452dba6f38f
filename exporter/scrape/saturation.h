#pragma once

#include <optional>
#include <span>

#include "metrics/family.h"
#include "metrics/window.h"

namespace tacho::scrape {

/// Families `tacho_saturation_ratio` and `tacho_saturation_ratio_error`.
std::span<const metrics::Family> saturation_families();

/// A mean over the window and its standard error.
struct Saturation {
  double ratio = 0;  ///< 0 idle … 1 saturated
  double error = 0;
};

/// The utilisation ρ at which an M/M/1 queue has `waiting` requests waiting on average: Lq = ρ² / (1 − ρ) solved for ρ
/// (Kleinrock, Queueing Systems I, 3.2). 0 … 1, about √waiting for few, 1 − 1/waiting for many.
double utilisation_of_queue(double waiting);

/// Saturation of a target, over the samples of a window: the larger one of
///   - ρ of an M/M/1 queue as long as the target's: the mean number of requests that have arrived and are not read yet,
///     Lq = Δ Σ queue time / T (Little's law), whatever makes them wait;
///   - the share of its CPUs that it runs on, Δ running time / (T · cores), which also sees work without requests.
/// It needs no calibration. Why this one, how well it detects saturation, and when it is wrong:
/// tests/validation/README.md.
///
/// The standard error is that of a mean over the seconds of the window (batch means; Law, Simulation Modeling and
/// Analysis, 9.5.3), carried over to ρ by its derivative. One more second, spread evenly over 0 … 1, is added to the
/// observed ones, so that the error is 0.29 after a single second and 0.03 after ten equal ones.
///
/// Nothing before the second sample, and if neither part is available.
std::optional<Saturation> saturation(std::span<const metrics::WindowSample> samples);

}  // namespace tacho::scrape
