#include "stuck_report.h"

#include <spdlog/spdlog.h>

#include <chrono>

namespace tacho {
namespace {

constexpr auto kReportEvery = std::chrono::seconds(60);

}  // namespace

void StuckReport::look(const std::optional<Liveness::Stuck>& stuck) {
  const auto now = Liveness::Clock::now();
  if (stuck && (stuck->what != reported_ || now >= next_)) {
    spdlog::error("{}; /-/healthy and /-/ready say so", stuck->text());
    reported_ = stuck->what;
    next_ = now + kReportEvery;
  } else if (!stuck && !reported_.empty()) {
    spdlog::info("{} goes on", reported_);
    reported_.clear();
  }
}

}  // namespace tacho
