#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "support/address.h"

namespace tacho::support {

/// What a bad network does to data, in each direction of a connection.
struct Faults {
  std::chrono::milliseconds delay{10};  ///< of every piece
  std::chrono::milliseconds late{200};  ///< so much more, of the late ones
  double share = 0.01;                  ///< of the pieces that are late
};

/// Takes connections, makes one to the server for each, and passes on what comes, later.
class FaultyNetwork {
 public:
  FaultyNetwork(UniqueFd listener, Address server, Faults faults, std::uint64_t seed)
      : listener_(std::move(listener)), server_(server), faults_(faults), random_(seed), late_(faults.share) {}

  /// Does not end but with an error.
  Result<void> serve();

 private:
  using Clock = std::chrono::steady_clock;

  /// One direction of a connection.
  struct Pipe {
    int from = -1;
    int to = -1;
    Clock::time_point last_due;
  };

  struct Connection {
    UniqueFd client;
    UniqueFd server;
    std::array<Pipe, 2> pipes;
    int open_directions = 2;
  };

  struct Piece {
    Clock::time_point due;
    std::uint64_t number = 0;  // pieces that are due at the same time keep their order
    std::shared_ptr<Connection> connection;
    std::size_t direction = 0;
    std::vector<char> bytes;  // empty: the end of the stream

    bool operator<(const Piece& other) const { return std::tie(due, number) > std::tie(other.due, other.number); }
  };

  void watch(int descriptor, std::uint64_t key);
  const timespec* patience();
  void take_connection();
  void take_piece(std::size_t place, std::size_t direction);
  void deliver();

  UniqueFd listener_;
  Address server_;
  Faults faults_;
  std::mt19937_64 random_;
  std::bernoulli_distribution late_;
  UniqueFd epoll_;
  timespec time_{};
  std::vector<std::shared_ptr<Connection>> connections_;  // never shortened: a test has few
  std::priority_queue<Piece> pieces_;
  std::uint64_t numbers_ = 0;
};

}  // namespace tacho::support
