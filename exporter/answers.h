#pragma once

#include <chrono>

#include "app.h"
#include "base/liveness.h"
#include "base/log.h"
#include "boundary/lane.h"
#include "reload.h"

namespace tacho {

/// What the collector makes of questions: pages of the scraper, JSON, reloads. Thread-safe.
class Answers {
 public:
  /// Each outlives this.
  Answers(App& app, ReloadQueue& reloads, Liveness& liveness) : app_(app), reloads_(reloads), liveness_(liveness) {}

  /// Never throws; what goes wrong is logged. @param question whoever asked it: its fields are checked
  boundary::SealedAnswer make(const boundary::Question& question);

 private:
  boundary::SealedAnswer answer(const boundary::Question& question);
  boundary::Status reload();

  App& app_;
  ReloadQueue& reloads_;
  Liveness& liveness_;
  RateLimited problems_{std::chrono::seconds(10)};  // who asks may ask often
};

}  // namespace tacho
