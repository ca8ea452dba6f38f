#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "web/in_flight.h"
#include "web/listener.h"

namespace tacho::web {

/// What the gate bounds; the defaults are the server's.
struct GateLimits {
  std::size_t waiting = 256;                                            ///< connections without a worker
  std::chrono::milliseconds head_timeout = std::chrono::seconds(5);     ///< from accept until a worker has it
  std::chrono::milliseconds client_timeout = std::chrono::seconds(10);  ///< that a worker waits for its client
  std::chrono::milliseconds busy_patience{250};                         ///< the same while others need a worker
};

/// Connections since the start; each only grows.
struct GateCounters {
  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> timed_out = 0;  ///< closed: no whole request head in time
  std::atomic<std::uint64_t> displaced = 0;  ///< closed while waiting: too many others came after it
  std::atomic<std::uint64_t> cut_off = 0;    ///< lost its worker: its client was too slow
};

/// Accepts connections and holds each until its request head can be read without waiting, then gives it to a worker. A
/// slow client (half-open, dripping headers) thus costs a descriptor, not a thread. When more requests are ready than
/// workers are free, the newest goes first and the client that keeps its worker waiting longest loses it: a scrape
/// among any number of slow clients waits for a fraction of a second.
class Gate {
 public:
  struct Hooks {
    std::function<bool()> expects_tls;  ///< of a connection just accepted
    std::function<bool(int socket, bool tls)>
        hand_over;  ///< to a worker, which reports to `in_flight`; false: not taken
  };

  /// Starts the thread; hooks are called on it. `in_flight` must outlive the gate.
  static Result<std::unique_ptr<Gate>> open(std::vector<Listener> listeners, Hooks hooks, InFlight& in_flight,
                                            const GateLimits& limits = {});
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  /// Closes the listeners and all connections that have no worker.
  ~Gate();

  [[nodiscard]] const GateCounters& counters() const { return counters_; }

 private:
  using Clock = InFlight::Clock;
  struct Waiting;
  using Line = std::list<Waiting>;  // oldest first

  Gate(std::vector<Listener> listeners, Hooks hooks, InFlight& in_flight, const GateLimits& limits);
  Result<void> prepare();
  void run();

  void accept_all(int listener);
  bool make_room();
  void admit(int connection);
  void examine(Line::iterator waiting, bool no_more_data);
  static void refuse_plain(const Waiting& waiting);
  void drop(Line::iterator waiting);

  void serve_ready();
  void expire();
  [[nodiscard]] int milliseconds_to_wait() const;

  std::vector<Listener> listeners_;
  const Hooks hooks_;
  InFlight& in_flight_;
  const GateLimits limits_;
  UniqueFd epoll_;
  UniqueFd spare_;  // closed for a moment to refuse a connection when no descriptor is left
  Line line_;
  std::unordered_map<int, Line::iterator> by_socket_;
  std::size_t ready_ = 0;  // of line_
  GateCounters counters_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace tacho::web
