#include "scrape/families.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "config/glob.h"
#include "config/suggest.h"
#include "probes/registry.h"
#include "scrape/conditions.h"
#include "scrape/diagnosis.h"
#include "scrape/own_time.h"
#include "scrape/saturation.h"
#include "scrape/self_families.h"
#include "scrape/shed_report.h"

namespace tacho::scrape {

std::vector<JudgedFamilies> judged_families() {
  return {{"Saturation", saturation_families()},
          {"Bottleneck", bottleneck_families()},
          {"Overhead", overhead_families()},
          {"Shedding", shed_families()},
          {"Validity", condition_families()}};
}

std::vector<std::string_view> family_names() {
  std::vector<std::string_view> names;
  const auto add = [&names](const auto& families) {
    for (const auto& family : families) {
      names.push_back(family.name);
    }
  };
  for (const probes::Entry& probe : probes::registry()) {
    add(probe.families());
  }
  for (const JudgedFamilies& judged : judged_families()) {
    add(judged.families);
  }
  add(kSelfFamilies);
  return names;
}

FamilySet matching_families(std::span<const config::FamilyGlob> globs) {
  FamilySet found;
  for (const config::FamilyGlob& each : globs) {
    // One that does not compile was refused where it stands.
    if (const auto glob = config::Glob::compile(each.pattern)) {
      std::ranges::copy_if(family_names(), std::inserter(found, found.end()),
                           [&](std::string_view name) { return glob->matches(name); });
    }
  }
  return found;
}

std::vector<config::Diagnostic> pointless_drops(const config::Config& config) {
  std::vector<config::Diagnostic> warnings;
  const std::vector<config::FamilyGlob>& globs = config.metrics.drop;
  for (std::size_t i = 0; i < globs.size(); ++i) {
    // An empty pattern stands for an entry that is refused anyway.
    if (!globs[i].pattern.empty() && matching_families(std::span(globs).subspan(i, 1)).empty()) {
      const auto meant = config::nearest(globs[i].pattern, family_names());
      warnings.push_back(
          {.severity = config::Severity::warning,
           .where = globs[i].where,
           .message =
               fmt::format("metrics.drop[{}]: {} matches no metric of tacho", i, config::quote(globs[i].pattern)),
           .hint = meant.empty() ? "exporter/METRICS.md lists them" : "did you mean " + config::quote(meant) + '?'});
    }
  }
  return warnings;
}

}  // namespace tacho::scrape
