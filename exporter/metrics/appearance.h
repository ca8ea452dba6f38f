#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "metrics/family.h"
#include "metrics/value.h"

namespace tacho::metrics {

/// The samples of one target that have appeared, of the families of one probe that appear with their first event.
/// Kept for as long as the target, so that no series ends and begins again, whatever its value returns to.
class Appearance {
 public:
  /// Notes which samples of `row` have had an event: a value other than 0, a histogram with an observation above 0.
  /// Those without one so far become absent. The samples that appear have their true value: their counters were 0
  /// before, so nothing is missing from them.
  /// @param families of the row, the same ones at each call
  void apply(std::span<const Family> families, Row& row);

 private:
  std::vector<bool> seen_;  // by sample whose label values are not known at run time only, in the order of the families
};

}  // namespace tacho::metrics
