#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "support/address.h"

namespace tacho::support {

/// What a load client does; every connection has one request outstanding at a time.
struct Plan {
  Address address;
  std::size_t connections = 1;
  std::uint64_t requests_per_connection = 0;  ///< a new connection after so many requests; 0: never
  bool resets = false;                        ///< ends connections by RST, right behind the last byte of the reply
  std::size_t request_bytes = 64;
  std::size_t reply_bytes = 64;
  bool keep_open = false;  ///< connections stay open after a batch
  double rate = 0;  ///< requests a second of all connections together, on a fixed schedule; 0: as fast as they come
};

/// What the client counted.
struct Outcome {
  std::uint64_t answered = 0;     ///< complete replies received
  std::uint64_t failed = 0;       ///< requests sent whose reply never came
  std::uint64_t connections = 0;  ///< connections opened
  std::chrono::nanoseconds elapsed{};
  std::vector<std::chrono::nanoseconds> latencies;  ///< of every answered request, send to last byte of the reply
};

/// Connections that stay open from one batch of requests to the next.
class Load {
 public:
  explicit Load(Plan plan) : plan_(plan), sockets_(plan.connections) {}

  /// Opens all connections; needed only to have them open before the first batch.
  Result<void> open();

  /// Sends `requests` requests (nullopt: until `stop`) over the connections, one thread each.
  Outcome run(std::optional<std::uint64_t> requests, const std::atomic<bool>& stop);

 private:
  struct Batch {
    std::optional<std::uint64_t> requests;
    const std::atomic<bool>* stop;
    std::chrono::steady_clock::time_point start;
    std::atomic<std::uint64_t> tickets;
  };

  bool connect_one(UniqueFd& socket, Outcome& outcome) const;
  void end_connection(UniqueFd& socket) const;
  Outcome run_one(UniqueFd& socket, Batch& batch) const;

  Plan plan_;
  std::vector<UniqueFd> sockets_;
  std::uint64_t opened_ = 0;
};

}  // namespace tacho::support
