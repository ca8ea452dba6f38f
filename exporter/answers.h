#pragma once

#include <chrono>

#include "app.h"
#include "base/liveness.h"
#include "base/log.h"
#include "boundary/lane.h"
#include "reload.h"

namespace tacho {

/// Makes the collector's answers to questions: pages of the scraper, JSON, reloads. Thread-safe.
class Answers {
 public:
  /// Each argument must outlive this object.
  Answers(App& app, ReloadQueue& reloads, Liveness& liveness) : app_(app), reloads_(reloads), liveness_(liveness) {}

  /// Never throws; failures are logged. @param question may come from anybody: its fields are checked
  boundary::SealedAnswer make(const boundary::Question& question);

 private:
  boundary::SealedAnswer answer(const boundary::Question& question);
  boundary::Status reload();

  App& app_;
  ReloadQueue& reloads_;
  Liveness& liveness_;
  RateLimited problems_{std::chrono::seconds(10)};  // a client may ask often
};

}  // namespace tacho
