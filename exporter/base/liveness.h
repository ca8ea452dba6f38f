#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tacho {

/// The tasks under way in this program, each with its start. A task that waits for a lock, for the kernel or for a
/// reader for too long is stuck, and can be named. Thread-safe.
class Liveness {
 public:
  using Clock = std::chrono::steady_clock;
  /// A task that takes longer is stuck.
  static constexpr Clock::duration kPatience = std::chrono::seconds(10);

  explicit Liveness(std::function<Clock::time_point()> now = Clock::now) : now_(std::move(now)) {}

  /// A task; it is under way until this object is destroyed.
  class Task {
   public:
    Task(Liveness& liveness, std::uint64_t id) : liveness_(&liveness), id_(id) {}
    Task(Task&& other) noexcept : liveness_(std::exchange(other.liveness_, nullptr)), id_(other.id_) {}
    Task& operator=(Task&&) = delete;
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    ~Task();
    /// Names the step that begins now, which also shows that the task is alive.
    void now_at(std::string_view step);

   private:
    Liveness* liveness_;
    std::uint64_t id_;
  };

  /// @param what "the main loop", "GET /metrics"
  Task begin(std::string what);

  struct Stuck {
    std::string what;  ///< with its step
    Clock::duration time{};

    /// "the main loop (sampling) is stuck for 12 s"
    [[nodiscard]] std::string text() const;
  };
  /// The task that has been in one step for longest, if that is longer than kPatience.
  [[nodiscard]] std::optional<Stuck> stuck() const;

 private:
  struct Entry {
    std::string what;
    std::string step;
    Clock::time_point since;
  };

  const std::function<Clock::time_point()> now_;
  mutable std::mutex mutex_;
  std::map<std::uint64_t, Entry> entries_;
  std::uint64_t next_ = 0;
};

}  // namespace tacho
