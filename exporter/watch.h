#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/liveness.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "stuck_report.h"

namespace tacho {

/// Watches the program from a thread of its own that waits for nobody. It logs what is stuck, and ends the program on
/// SIGINT and SIGTERM: in order if the thread that runs the program follows, otherwise without it.
class Watch {
 public:
  using Publish = std::function<void(const std::optional<Liveness::Stuck>&)>;
  /// The program has ended so long after the signal.
  static constexpr auto kTimeToEnd = std::chrono::milliseconds(900);

  /// Blocks the two signals in the calling thread, and in those that it starts from here on.
  /// @param publish is called with what is stuck once a second, on that thread; empty: no call
  static Result<std::unique_ptr<Watch>> start(const Liveness& liveness, Publish publish = {});
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  /// The program ended in order.
  ~Watch();

  /// Readable once one of the signals came.
  [[nodiscard]] int descriptor() const { return ending_.get(); }
  /// That signal, or 0.
  [[nodiscard]] int signal() const { return signal_; }
  /// The exit code of the program.
  [[nodiscard]] int code() const { return code_; }
  /// Ends the program with that exit code, as a signal does with 0.
  void end(int code);
  /// Only the removal of the programs from the kernel is left. It takes a grace period for each of the older
  /// tracepoints; the kernel does the same for a process that has ended.
  void only_kernel_is_left() { only_kernel_is_left_ = true; }

 private:
  Watch(const Liveness& liveness, Publish publish) : liveness_(liveness), publish_(std::move(publish)) {}
  void run();
  void report();
  void take_signal();
  void begin_to_end(int signal);

  const Liveness& liveness_;
  UniqueFd signals_;
  UniqueFd wanted_;
  UniqueFd ending_;
  UniqueFd done_;
  std::atomic<int> signal_ = 0;
  std::atomic<int> code_ = 0;
  std::atomic<bool> only_kernel_is_left_ = false;
  Liveness::Clock::time_point end_;
  const Publish publish_;
  StuckReport report_;
  std::thread thread_;
};

}  // namespace tacho
