#pragma once

#include <optional>
#include <string>

#include "base/liveness.h"

namespace tacho {

/// Logs now and then what is stuck, and when it goes on. One thread at a time.
class StuckReport {
 public:
  void look(const std::optional<Liveness::Stuck>& stuck);

 private:
  std::string reported_;
  Liveness::Clock::time_point next_;
};

}  // namespace tacho
