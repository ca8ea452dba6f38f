#pragma once

#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/diagnostic.h"
#include "metrics/family.h"

namespace tacho::scrape {

/// Families of targets that no probe has: they are computed from samples. By title in METRICS.md.
struct JudgedFamilies {
  std::string_view title;
  std::span<const metrics::Family> families;
};
std::vector<JudgedFamilies> judged_families();

/// The names of all families that there are: of all probes, whether they are on or not, and about tacho itself.
std::vector<std::string_view> family_names();

using FamilySet = std::set<std::string_view>;
/// Those that one of the globs matches.
FamilySet matching_families(std::span<const config::FamilyGlob> globs);

/// A warning for each glob in `metrics.drop` that matches no family.
std::vector<config::Diagnostic> pointless_drops(const config::Config& config);

}  // namespace tacho::scrape
