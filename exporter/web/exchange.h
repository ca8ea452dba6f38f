#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/liveness.h"
#include "web/render.h"
#include "web/request_head.h"
#include "web/site.h"
#include "web/source.h"
#include "web/stream.h"

namespace tacho::web {

/// What all connections of one source have in common.
struct Companions {
  std::size_t connections = 0;
  bool known = false;  ///< it was served before
};

/// A connection from accept to close: one request and its answer.
struct Exchange {
  enum class Phase : std::uint8_t {
    greeting,  ///< TLS shakes hands
    reading,   ///< the request head comes
    working,   ///< in line for a thread, or a thread has it
    sending,   ///< the answer goes out
    closing,   ///< all is written; further data of the client is discarded, so that no reset overtakes the answer
  };
  using Clock = std::chrono::steady_clock;

  Exchange(std::uint64_t number, UniqueFd socket, SSL_CTX* context, Source from)
      : id(number),
        stream(std::move(socket), context),
        source(std::move(from)),
        phase(stream.tls() ? Phase::greeting : Phase::reading) {}

  [[nodiscard]] bool waits_for_request() const { return phase == Phase::greeting || phase == Phase::reading; }
  /// Whether the client has not taken all of its answer.
  [[nodiscard]] bool owes_answer() const {
    return phase == Phase::sending || (phase == Phase::closing && stream.undelivered() > 0);
  }

  std::uint64_t id;
  Stream stream;
  Source source;
  Companions* of_source = nullptr;  ///< the same for all of its source
  Phase phase;
  Clock::time_point accepted = Clock::now();
  Clock::time_point since = accepted;  ///< when it asked; once the answer goes out: when the client last took some
  unsigned looks = 0;                  ///< that brought less than what was needed
  bool left = false;                   ///< its client sends no more amid a handshake, which can come to nothing
  bool paused = false;                 ///< news of it wait for the clock
  bool in_line = false;                ///< for its handshake, or for more of its answer: it waits for us
  Clock::time_point in_line_since;
  Clock::time_point quiet_since = accepted;  ///< when all that it had sent was read

  HeadCollector head;
  Request request;
  RenderOptions options;
  const Route* route = nullptr;
  std::optional<Liveness::Task> task;

  Rendered answer;
  bool good = false;           ///< the answer is no refusal
  std::size_t piece = 0;       ///< to be sent next: 0 is the head, then those of the body
  std::size_t sent = 0;        ///< of that piece
  std::size_t taken = 0;       ///< of all of it
  Clock::time_point answered;  ///< when it was there to be taken
  std::size_t drained = 0;
  std::size_t undelivered = 0;  ///< bytes of it that the client's side had not taken at the last check
};

}  // namespace tacho::web
