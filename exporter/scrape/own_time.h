#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "metrics/family.h"
#include "metrics/value.h"
#include "probes/sample.h"

namespace tacho::scrape {

/// Estimated time of tacho's programs for the events of one target, in ns by probe: socket, poll, sched. None: the
/// probe is not there. How it is estimated: bpf/lib/own_time.bpf.h.
using OwnTime = std::array<std::optional<std::uint64_t>, 3>;

[[nodiscard]] OwnTime own_time(const probes::TargetSample& sample);

/// Family `tacho_overhead_seconds_total`.
std::span<const metrics::Family> overhead_families();

/// Values of overhead_families().
metrics::Row overhead_row(const OwnTime& time);

}  // namespace tacho::scrape
