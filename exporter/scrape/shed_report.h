#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/family.h"
#include "metrics/value.h"
#include "probes/sample.h"
#include "scrape/own_time.h"
#include "scrape/shedding.h"

namespace tacho::scrape {

/// The counters of a target behind a step of the policy.
struct ShedSeen {
  OwnTime own;
  std::optional<std::uint64_t> cpu_ns;  ///< thread time on CPUs
  std::uint64_t followed = 0;           ///< operations whose frames of HTTP/2 were looked at
  bool anatomy = false;
  std::uint64_t connections = 0;  ///< of its servers, that are open
};

[[nodiscard]] ShedSeen shed_seen(const probes::TargetSample& sample);
/// What a target's programs took between two samples, and what could be done without.
[[nodiscard]] ShedInput shed_input(const ShedSeen& from, const ShedSeen& to);

/// A target whose level has changed, or that exceeds a limit at its last one.
struct ShedNews {
  std::string_view target;
  ShedLevel before = TACHO_SHED_NOTHING;
  ShedLevel now = TACHO_SHED_NOTHING;
  bool exhausted = false;
};
/// One line of the log, with the first few of them.
[[nodiscard]] std::string shed_line(std::span<const ShedNews> news);

/// Family `tacho_shed_level`.
std::span<const metrics::Family> shed_families();

}  // namespace tacho::scrape
