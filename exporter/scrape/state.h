#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bpf/anatomy.h"
#include "metrics/appearance.h"
#include "metrics/family_writer.h"
#include "metrics/history.h"
#include "metrics/series.h"
#include "metrics/window.h"
#include "probes/probe.h"
#include "scrape/conditions.h"
#include "scrape/kernel_clock.h"
#include "scrape/own_time.h"
#include "scrape/self_metrics.h"
#include "scrape/waits.h"
#include "targets/target_table.h"

namespace tacho::scrape {

/// The state of a target in user space.
struct TargetState {
  const targets::Target* target = nullptr;
  std::string id;
  metrics::History history;
  metrics::Window window;
  std::unique_ptr<WaitHistory> waits;         // from the first request on whose parts are available
  std::uint64_t requests = 0;                 // as of the last sample
  OwnTime own_time;                           // the same
  std::optional<request_part> bottleneck;     // the same
  std::uint32_t bottlenecks = 0;              // parts that were one, by bit
  std::vector<metrics::TargetSeries> series;  // by probe, then of what is judged
  std::vector<metrics::Appearance> appeared;  // by probe
  metrics::ProtoTarget proto;

  explicit TargetState(std::chrono::nanoseconds length) : window(length) {}

  [[nodiscard]] probes::Look look(bool in_detail) const {
    return {target->ref.index, kernel_now_ns(), target->wanted.identity.path, in_detail};
  }
  /// The conditions that hold over the window.
  [[nodiscard]] Conditions conditions() const {
    const auto samples = window.samples();
    return samples.empty() ? Conditions{}
                           : scrape::conditions(samples.front(), samples.back(), window.gauges().few_samples);
  }
};

/// Whether there is a target that is reported: a retired one is only kept up to date, a new one waits for the kernel.
inline bool shows(const std::unique_ptr<TargetState>& target) {
  return target && target->target->counts && target->target->state != targets::Target::State::resting;
}

/// The results of the sampler, and its sources: everything that is exported of targets, or shown to people.
struct State {
  std::vector<std::unique_ptr<probes::Probe>> probes;
  std::vector<std::string> failed;                    // probes that could not be loaded
  std::vector<std::unique_ptr<TargetState>> targets;  // by index
  std::vector<ObservedObject> objects;                // as of the last look: that of the targets, then those of probes
  metrics::Losses losses;                             // as of the last sample
  std::string instance;                               // of this process
  std::uint64_t tick = 0;                             // of the last sample: seconds since the first one, and 1

  [[nodiscard]] probes::TargetSample sample(const TargetState& target, bool in_detail) const {
    const probes::Look look = target.look(in_detail);
    probes::TargetSample sample;
    sample.time_ns = look.now_ns;
    for (const auto& probe : probes) {
      probe->sample(look, sample);
    }
    return sample;
  }
};

}  // namespace tacho::scrape
