#pragma once

#include <array>
#include <optional>
#include <span>

#include "metrics/family.h"
#include "metrics/value.h"
#include "scrape/state.h"

namespace tacho::scrape {

/// Families that are computed from what the sampler has found.
struct Judgement {
  std::span<const metrics::Family> (*families)();
  std::optional<metrics::Row> (*row)(const Findings& found);  ///< nothing: unavailable
  bool stays = false;                                         ///< with its last value once the target has ended
};

/// In the order of the page.
extern const std::array<Judgement, 5> kJudgements;

}  // namespace tacho::scrape
