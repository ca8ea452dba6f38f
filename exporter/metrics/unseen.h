#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "metrics/family.h"
#include "metrics/value.h"

namespace tacho::metrics {

/// The samples of a probe's families that nobody observes, since a hook that they need is not attached. They are
/// absent: at 0 they would state that nothing happened.
class Unseen {
 public:
  Unseen() = default;
  /// @param lacks whether a hook is one of the probe's, and is not attached
  Unseen(std::span<const Family> families, const std::function<bool(std::string_view)>& lacks);

  /// Takes them out of a row of these families, which may have none of them.
  void hide(Row& row) const;

 private:
  std::vector<std::size_t> values_;  // places in the row
  std::vector<std::size_t> fine_;
  std::vector<std::size_t> histograms_;
  std::vector<std::size_t> families_;  // whose label values are known at run time only
};

}  // namespace tacho::metrics
