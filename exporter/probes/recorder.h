#pragma once

#include <bpf/libbpf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bpf/socket.h"
#include "metrics/value.h"
#include "probes/slow_requests.h"

namespace tacho::probes {

/// The slowest requests of all targets, as the programs write them into a ring buffer (bpf/socket_recorder.bpf.h).
class Recorder {
 public:
  /// @param indices of targets
  /// @param minute_ns of each so long the slowest are kept; an even number
  Recorder(std::size_t indices, std::int64_t minute_ns);

  /// Reads from this map, `slow_records`; logs if that cannot be.
  void open(int ring);
  /// Takes what has been written since the last call.
  void take();
  /// The index is given to another target.
  void forget(std::uint32_t index);
  /// From the beginning of a target.
  static void start(socket_chains& chains);
  /// Says from which duration on requests of this minute and of the next are written; the programs raise it between two
  /// calls. Once a second.
  void set_threshold(std::uint32_t index, std::int64_t now_ns, socket_chains& chains);

  [[nodiscard]] std::vector<request_record> slowest(std::uint32_t index, std::int64_t now_ns);
  /// Of tacho_request_duration_seconds: the slowest of the current and the last minute.
  [[nodiscard]] std::vector<metrics::Exemplar> exemplars(std::uint32_t index, std::int64_t now_ns);

 private:
  struct RingDeleter {
    void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
  };
  static int take_record(void* recorder, void* data, std::size_t size);

  std::int64_t minute_ns_;
  std::vector<SlowRequests> slowest_;                  // by index
  std::unique_ptr<ring_buffer, RingDeleter> records_;  // none without anatomy
};

}  // namespace tacho::probes
