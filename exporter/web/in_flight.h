#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tacho::web {

/// The connections that civetweb's worker threads are busy with, by socket. The gate adds them, the workers report how
/// far they are, and the gate cuts off the slowest when somebody else needs its worker. Thread-safe.
class InFlight {
 public:
  using Clock = std::chrono::steady_clock;

  static Result<std::unique_ptr<InFlight>> create(std::size_t workers);

  /// An eventfd (nonblocking, the gate reads it) that becomes readable whenever a worker is free again.
  [[nodiscard]] int event_fd() const { return event_.get(); }
  void notify() const;

  /// A worker is about to get this socket. False: all are busy.
  bool start(int socket, Clock::time_point now);
  /// The worker could not be given the socket after all.
  void cancel(int socket);

  /// Our own code is at work for this connection; it is not cut off meanwhile.
  void handling(int socket);
  /// The response is being sent.
  void sending(int socket, Clock::time_point now);
  /// The socket is about to be closed: its number is not touched any more.
  void closing(int socket);
  /// The worker is free again.
  void closed();

  /// Shuts down the connections that have waited longest for their clients, at least `patience` each, until `wanted`
  /// workers are free or about to be: the worker fails on its socket and ends. Returns how many were cut off.
  std::size_t cut_off(std::size_t wanted, Clock::duration patience, Clock::time_point now);

  /// When the next connection may have waited for its client for `patience`; time_point::max() where none is in flight.
  [[nodiscard]] Clock::time_point next_cut_off(Clock::duration patience, Clock::time_point now) const;

  /// From now on nobody waits for a client: shuts down all that do, and the others once our code is done with them.
  void cut_off_all();
  /// Whether all workers became free in time.
  bool wait_until_idle(Clock::duration timeout);

 private:
  enum class Phase : std::uint8_t { reading, handling, sending };
  struct Work {
    Phase phase = Phase::reading;
    Clock::time_point since;
    bool cut = false;

    [[nodiscard]] bool waits_for_client() const { return phase != Phase::handling && !cut; }
  };

  InFlight(std::size_t workers, UniqueFd event) : workers_(workers), event_(std::move(event)) {}
  void enter(int socket, Phase phase, Clock::time_point now);
  static void cut(int socket, Work& work);

  const std::size_t workers_;
  const UniqueFd event_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<int, Work> works_;
  std::size_t busy_ = 0;
  bool stopping_ = false;
};

}  // namespace tacho::web
