#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/anatomy.h"
#include "metrics/value.h"
#include "probes/peers.h"

namespace tacho::probes {

/// Names of the parts of a request's time, by enum request_part.
extern const std::array<std::string_view, TACHO_PARTS> kPartNames;
/// Names of the modes of serving, by enum serving_mode; the last one is of requests without parts.
extern const std::array<std::string_view, TACHO_SERVING_MODES + 1> kModeNames;

/// One of the slowest requests of a target.
struct SlowRequest {
  std::int64_t ended_ns = 0;  ///< when its reply's first byte left, CLOCK_MONOTONIC
  std::uint64_t duration_ns = 0;
  std::array<std::uint64_t, TACHO_PARTS> parts_ns{};  ///< they add up to the duration
  std::string_view mode;                              ///< of kModeNames
  std::string client;                                 ///< "10.0.0.7:41234"; empty: no TCP
  std::string thread_name;                            ///< of the thread that answered, as the kernel has it
  std::uint32_t thread = 0;                           ///< its number in the first PID namespace
  std::uint32_t bytes = 0;                            ///< of the request
  std::uint32_t reply_bytes = 0;                      ///< of the send that began the reply
  std::uint32_t calls = 0;  ///< to dependencies, meanwhile, by the thread that had read it and answered it
  std::uint64_t calls_ns = 0;
  std::uint64_t longest_call_ns = 0;
  std::string longest_call_peer;  ///< empty: there was no call
};

/// @param longest_peer of the longest call; none: unknown
SlowRequest decode(const request_record& record, const PeerNames& names, const peer_address* longest_peer);

/// The request as an exemplar of the durations' histogram, the row's first fine one. Label `part` is the part that took
/// most of the time, `share` its share of the duration.
metrics::Exemplar exemplar(const request_record& record);

/// The slowest requests of a target, of each of the last minutes.
class SlowRequests {
 public:
  static constexpr std::size_t kKept = RECORDS_A_STEP;  ///< of a minute
  static constexpr std::int64_t kMinutes = 5;           ///< whole ones, and the current one
  static constexpr std::int64_t kMinuteNs = 60'000'000'000;

  /// @param minute_ns how long a minute is
  explicit SlowRequests(std::int64_t minute_ns = kMinuteNs) : minute_ns_(minute_ns) {}

  void add(const request_record& record);

  /// The duration from which on a request of this minute is among its slowest; 1 while there is room for any.
  /// @param now_ns CLOCK_MONOTONIC
  [[nodiscard]] std::uint64_t threshold(std::int64_t now_ns) const;

  /// The retained requests of all minutes, the slowest first.
  [[nodiscard]] std::vector<request_record> slowest(std::int64_t now_ns);

  /// Those of the current and the last minute, in no particular order; valid until the next change.
  [[nodiscard]] std::vector<const request_record*> recent(std::int64_t now_ns) const;

 private:
  struct Minute {
    std::int64_t number = 0;
    std::vector<request_record> kept;  // a heap, the fastest first
  };

  [[nodiscard]] std::int64_t minute_of(std::int64_t ns) const { return ns / minute_ns_; }
  void forget(std::int64_t before);

  std::int64_t minute_ns_;
  std::deque<Minute> minutes_;  // in order of their numbers
};

}  // namespace tacho::probes
