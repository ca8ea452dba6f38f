#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "support/address.h"
#include "support/open_loop/protocol.h"

namespace tacho::support {

using Clock = std::chrono::steady_clock;

/// How a generator reaches its server.
struct Reach {
  Address address;
  bool datagrams = false;
  bool reconnect = false;  ///< a connection for each request
  std::size_t connections = 32;
  double loss = 0;                   ///< share of datagrams that are lost, on the way there and on the way back
  std::uint64_t numbers = 1;         ///< requests are numbered at random below this
  std::chrono::nanoseconds timeout;  ///< of a reply; afterwards the request is an error
};

/// One load.
struct Burst {
  double rate = 0;  ///< requests a second, arrivals of a Poisson process; 0: closed loop, a request on every connection
  std::chrono::nanoseconds duration{};  ///< in which requests arrive; afterwards those that wait are sent, too
  std::uint64_t seed = 1;
};

/// What came of it. All requests that have arrived are completed, errors, or dropped.
struct BurstOutcome {
  Clock::time_point started;
  std::chrono::nanoseconds elapsed{};  ///< until the last reply
  std::uint64_t offered = 0;           ///< requests that arrived
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;  ///< of those, never on their way: the loss that was asked for
  std::uint64_t completed = 0;
  std::uint64_t errors = 0;                           ///< refused, timed out, connection lost
  std::uint64_t dropped = 0;                          ///< still unsent when as much time again had passed
  std::vector<std::chrono::nanoseconds> latencies;    ///< of completed requests, from their scheduled arrival
  std::vector<std::chrono::nanoseconds> round_trips;  ///< of the same, from when they were sent
  std::vector<std::uint32_t> timeline;                ///< completions in each kTimelineBin from the start on
  std::chrono::nanoseconds on_cpu{};                  ///< of this client, meanwhile
  std::chrono::nanoseconds run_queue{};               ///< it could have run, but its CPU was taken; 0 if not known
};

constexpr std::chrono::milliseconds kTimelineBin{10};

/// Sends requests when they are due, not when the server is ready for them: a request that finds every connection busy
/// waits, and its latency counts from when it was due (so that a slow server does not slow its own measurement down).
class Generator {
 public:
  Generator(Reach reach, MakeProtocol make_protocol);

  /// Connects and logs in.
  Result<void> open();

  /// One load, on the connections that are open; returns when nothing is outstanding.
  Result<BurstOutcome> run(const Burst& burst);

 private:
  struct Connection {
    UniqueFd socket;
    std::unique_ptr<Protocol> protocol;
    bool busy = false;
    Clock::time_point scheduled;
    Clock::time_point sent;
  };

  Result<void> connect(std::size_t index);
  Result<void> send_request(std::size_t index, Clock::time_point scheduled);
  void receive(std::size_t index);
  void finish(std::size_t index, bool answered);
  void give_up_on_late(Clock::time_point now);
  Result<void> admit(Clock::time_point now);
  [[nodiscard]] Clock::time_point next_event(Clock::time_point now) const;

  Reach reach_;
  MakeProtocol make_protocol_;
  std::vector<Connection> connections_;
  UniqueFd epoll_;
  std::deque<std::size_t> free_;
  std::deque<Clock::time_point> waiting_;
  std::mt19937_64 random_;
  std::bernoulli_distribution loses_;

  // Of the burst that runs.
  Burst burst_;
  BurstOutcome outcome_;
  Clock::time_point next_arrival_;
  std::size_t outstanding_ = 0;
};

}  // namespace tacho::support
