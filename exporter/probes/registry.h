#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/probe_list.h"
#include "kernel/variants.h"
#include "metrics/family.h"
#include "probes/probe.h"

namespace tacho::probes {

/// A probe as the program knows it before it is loaded. What else belongs to a probe has its name: bpf/NAME.bpf.c,
/// bpf/NAME.h, probes/NAME*.cpp, the key `probes.NAME`.
struct Entry {
  std::string_view name;
  std::string_view title;  ///< of its section in METRICS.md
  std::span<const metrics::Family> (*families)();
  const config::ProbeSwitch& (*settings)(const config::Config&);
  std::vector<kernel::Variant> (*variants)();
  Result<std::unique_ptr<Probe>> (*load)(const config::Config&, const Environment&);
  /// Whether its object is Environment::threads for other probes, or uses that object.
  enum class Threads : std::uint8_t { unused, kept, read } threads = Threads::unused;
};

/// One row for each probe of config/probe_list.h, in its order.
std::span<const Entry> registry();

/// What a probe's own files define: its families, the compilations of bpf/NAME.bpf.c, the best first, and how to load
/// them.
#define TACHO_PROBE_FUNCTIONS(name, ...)              \
  std::span<const metrics::Family> name##_families(); \
  std::vector<kernel::Variant> name##_variants();     \
  Result<std::unique_ptr<Probe>> load_##name##_probe(const config::Config& config, const Environment& environment);
TACHO_PROBES(TACHO_PROBE_FUNCTIONS)
#undef TACHO_PROBE_FUNCTIONS

}  // namespace tacho::probes
