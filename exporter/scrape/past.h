#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "metrics/history.h"
#include "scrape/waits.h"

namespace tacho::scrape {

/// What is remembered of a target for people, longer than the window. The sampler adds to it once a second, a view
/// copies from it: under a lock that is this target's alone. Neither the page of metrics nor discovery takes it.
class Past {
 public:
  /// @param window of the gauges
  explicit Past(std::chrono::nanoseconds window) : window_(window) {}

  /// The result of a function of the history and the waits; of these nullptr until a request's parts are available.
  template <class Use>
  [[nodiscard]] auto look(Use use) const {
    const std::lock_guard lock(mutex_);
    return use(history_, static_cast<const WaitHistory*>(waits_.get()));
  }

  // Only by the thread that samples, which needs no lock to read what nobody else changes.

  void push(std::uint64_t tick, const metrics::HistorySample& sample, std::optional<WaitSums> waits) {
    const std::lock_guard lock(mutex_);
    history_.push(tick, sample);
    if (!waits) {
      return;
    }
    if (!waits_) {
      waits_ = std::make_unique<WaitHistory>(window_);
    }
    waits_->push(std::move(*waits));
  }
  void set_window(std::chrono::nanoseconds window) {
    const std::lock_guard lock(mutex_);
    window_ = window;
    if (waits_) {
      waits_->set_window(window);
    }
  }
  [[nodiscard]] const metrics::History& history() const { return history_; }
  [[nodiscard]] const WaitHistory* waits() const { return waits_.get(); }

 private:
  std::chrono::nanoseconds window_;
  mutable std::mutex mutex_;
  metrics::History history_;
  std::unique_ptr<WaitHistory> waits_;
};

}  // namespace tacho::scrape
