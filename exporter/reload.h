#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tacho {

/// Reloads on the thread that owns the app, at most once a second. Requests that come before the reload begins share
/// it; only one caller can wait for it, the others get `busy`.
class ReloadQueue {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Outcome : std::uint8_t {
    done,
    failed,   ///< the configuration is bad, and the previous one stays in use; the log has the details
    busy,     ///< another caller waits for a reload already
    timeout,  ///< the main loop did not reload in time
  };

  ReloadQueue();

  /// On a web thread: asks, and waits for some seconds.
  Outcome ask();
  /// Without waiting, for a signal.
  void want();

  /// Readable when a reload was requested.
  [[nodiscard]] int descriptor() const { return event_.get(); }
  /// Resets the descriptor, on the thread that owns the app.
  void consume();
  /// When serve() is to be called; time_point::max() if no reload was requested.
  [[nodiscard]] Clock::time_point due();
  /// Ends the wait of the caller; later ones get `busy`.
  void close();
  /// Reloads if that is due.
  void serve(const std::function<Result<void>()>& reload, Clock::time_point now);

 private:
  const UniqueFd event_;
  std::mutex mutex_;
  bool wanted_ = false;
  std::shared_ptr<std::promise<bool>> waiting_;
  bool closed_ = false;
  Clock::time_point next_;  // the earliest
};

}  // namespace tacho
