#pragma once

#include <optional>
#include <string>

#include "base/liveness.h"

namespace tacho {

/// Says in the log what is stuck, now and then, and when it goes on. One thread at a time.
class StuckReport {
 public:
  void look(const std::optional<Liveness::Stuck>& stuck);

 private:
  std::string reported_;
  Liveness::Clock::time_point next_;
};

}  // namespace tacho
