#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

#include "base/liveness.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace tacho {

/// Looks after the program from a thread of its own, which waits for nobody: logs what is stuck, and ends the program
/// on SIGINT and SIGTERM: in order if the thread that runs it follows, and without it if that takes too long.
class Watch {
 public:
  /// From the signal on, everything has to be over by then.
  static constexpr auto kTimeToEnd = std::chrono::milliseconds(900);

  /// Blocks the two signals in the calling thread, and in those that it starts from here on.
  static Result<std::unique_ptr<Watch>> start(const Liveness& liveness);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  /// The program ended in order.
  ~Watch();

  /// Readable once one of the signals came.
  [[nodiscard]] int descriptor() const { return ending_.get(); }
  /// That signal, or 0.
  [[nodiscard]] int signal() const { return signal_; }
  /// All that is left is to take the programs out of the kernel, which waits for others: a grace period for each of the
  /// older tracepoints. It does the same for a process that has gone.
  void only_kernel_is_left() { only_kernel_is_left_ = true; }

 private:
  explicit Watch(const Liveness& liveness) : liveness_(liveness) {}
  void run();
  void report();
  void take_signal();

  const Liveness& liveness_;
  UniqueFd signals_;
  UniqueFd ending_;
  UniqueFd done_;
  std::atomic<int> signal_ = 0;
  std::atomic<bool> only_kernel_is_left_ = false;
  Liveness::Clock::time_point end_;
  std::string reported_;
  Liveness::Clock::time_point next_report_;
  std::thread thread_;
};

}  // namespace tacho
