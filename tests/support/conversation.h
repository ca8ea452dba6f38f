#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace tacho::support {

/// How a server treats each request; requests and replies have a fixed number of bytes.
struct Behaviour {
  std::size_t request_bytes = 64;
  std::size_t reply_bytes = 64;
  std::size_t read_chunk = 0;              ///< at most so many bytes a receive; 0: the whole request
  std::size_t sends = 1;                   ///< the reply goes out in so many sends
  std::chrono::nanoseconds read_delay{};   ///< between noticing data and the first receive of a request
  std::chrono::nanoseconds reply_delay{};  ///< between the last receive of a request and the first send
};

/// What a server did, counted by itself; lives in memory shared by its processes.
struct Tally {
  std::atomic<std::uint64_t> connections;
  std::atomic<std::uint64_t> requests;
  std::atomic<std::uint64_t> receives;  ///< receives that returned data
  std::atomic<std::uint64_t> sends;
  std::atomic<std::uint64_t> received_bytes;
  std::atomic<std::uint64_t> sent_bytes;
  std::atomic<std::uint64_t> queue_ns;    ///< Σ from noticing a request to its first receive having returned
  std::atomic<std::uint64_t> service_ns;  ///< Σ from the last receive of a request to just before the first send
};

/// One accepted connection: collects a request over as many receives as it takes, then replies.
class Conversation {
 public:
  Conversation(UniqueFd socket, const Behaviour& behaviour, Tally& tally);

  [[nodiscard]] int descriptor() const { return socket_.get(); }

  /// To be called when the socket is readable: one receive, and the reply when the request is complete.
  /// False when the connection has ended.
  bool serve_readable();

  /// Blocks: waits for data and serves until the connection has ended.
  void serve_to_the_end();

 private:
  bool reply();

  UniqueFd socket_;
  const Behaviour* behaviour_;
  Tally* tally_;
  std::string buffer_;
  std::string reply_;
  std::size_t received_ = 0;
};

}  // namespace tacho::support
