#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "bpf/anatomy.h"
#include "config/config.h"
#include "metrics/buckets.h"
#include "metrics/family_writer.h"
#include "metrics/series.h"
#include "metrics/window.h"
#include "probes/probe.h"
#include "scrape/conditions.h"
#include "scrape/families.h"
#include "scrape/kernel_clock.h"
#include "scrape/own_time.h"
#include "scrape/past.h"
#include "scrape/saturation.h"
#include "scrape/self_metrics.h"
#include "scrape/shedding.h"
#include "targets/target_table.h"

// What the thread that owns the targets publishes, once a second and with every change. Nothing of it changes
// afterwards, so whoever has it needs no lock; what it refers to lives as long as somebody has it. Only the
// accumulators, which the kernel counts on in, and the past of a target go on.

namespace tacho::scrape {

/// How pages are written.
struct Style {
  explicit Style(const config::Config& config);

  std::chrono::nanoseconds window;
  bool run_statistics;
  metrics::BucketLayout layout;
  metrics::HistogramForms forms;
  FamilySet dropped;
};

/// The prebuilt parts of a target's lines, for one Style.
struct Lines {
  std::vector<metrics::TargetSeries> series;  // by probe, then of what is judged
  metrics::ProtoTarget proto;
};

/// What a target's last sample and those of its window say.
struct Findings {
  metrics::Gauges gauges;
  Conditions conditions;                   ///< that hold over the window
  std::optional<Saturation> saturation;    ///< none: nothing can be said
  std::optional<request_part> bottleneck;  ///< now
  std::uint32_t bottlenecks = 0;           ///< parts that were one, by bit
  OwnTime own_time;
  std::optional<ShedLevel> shed_level;  ///< now; none: it was never above 0
};

/// What stays of a target as long as it is one.
struct TargetParts {
  std::string id;
  std::vector<std::shared_ptr<probes::Accumulators>> accumulators;  ///< by probe
  std::shared_ptr<const Past> past;
};

/// One target as of one moment.
struct TargetState {
  std::uint32_t index = 0;
  std::uint32_t epoch = 0;  ///< distinguishes it from others with the same index
  targets::Target::State state = targets::Target::State::live;
  bool counts = false;  ///< as in targets::Target
  std::size_t cgroups = 0;
  std::size_t processes = 0;
  std::shared_ptr<const TargetParts> parts;
  std::shared_ptr<const targets::DesiredTarget> wanted;  ///< without its members
  std::shared_ptr<const Lines> lines;
  Findings found;

  /// Whether it is reported: a retired one is only kept up to date, a new one waits for the kernel.
  [[nodiscard]] bool shows() const { return counts && state != targets::Target::State::resting; }
  /// Whether it is judged: of one that has ended only the counters' last values matter.
  [[nodiscard]] bool is_judged() const { return state == targets::Target::State::live; }

  [[nodiscard]] probes::Look look(bool in_detail) const { return {kernel_now_ns(), wanted->identity.path, in_detail}; }
  /// A sample of now, with the names of peers.
  [[nodiscard]] probes::TargetSample sample() const {
    const probes::Look look = this->look(true);
    probes::TargetSample sample;
    sample.time_ns = look.now_ns;
    for (const auto& each : parts->accumulators) {
      each->sample(look, sample);
    }
    return sample;
  }
};

/// Everything that is exported of targets, or shown to people.
struct State {
  std::vector<probes::ProbeInfo> probes;
  std::vector<std::string> failed;                             // probes that could not be loaded
  std::string instance;                                        // of this process
  std::shared_ptr<const Style> style;                          // of the lines of all targets
  std::vector<std::shared_ptr<const TargetState>> targets;     // by index, rising
  TableNumbers numbers;                                        // of all targets
  std::shared_ptr<const std::vector<ObservedObject>> objects;  // as of the last sample: that of the targets first
  metrics::Losses losses;                                      // the same
  std::uint64_t tick = 0;                                      // of the last sample: seconds since the first one, and 1
  ReloadState reload;
};

/// The latest state.
using Published = Guarded<std::shared_ptr<const State>>;

}  // namespace tacho::scrape
