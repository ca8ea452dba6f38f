#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernel/variants.h"
#include "metrics/family.h"
#include "probes/probe.h"

namespace tacho::probes {

/// A probe as the program knows it before it is loaded. The registry has one row for each; what else belongs to a probe
/// has its name: bpf/NAME.bpf.c, bpf/NAME.h, probes/NAME*.cpp, the key `probes.NAME`.
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

std::span<const Entry> registry();

}  // namespace tacho::probes
