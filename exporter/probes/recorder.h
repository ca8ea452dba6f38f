#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "bpf/socket.h"
#include "kernel/ring_buffer.h"
#include "metrics/value.h"
#include "probes/slow_requests.h"

namespace tacho::probes {

/// The slowest requests of all targets, as the programs write them into a ring buffer (bpf/socket_recorder.bpf.h).
/// Any thread may ask: it has a lock of its own, held while records are taken and copied.
class Recorder {
 public:
  /// @param indices of targets
  /// @param minute_ns the period of which the slowest are retained; an even number
  Recorder(std::size_t indices, std::int64_t minute_ns);

  /// Reads from the object's map `slow_records`; logs a failure. The recorder may not be moved from then on.
  void open(const kernel::BpfObject& object);
  /// Takes what has been written since the last call.
  void take();
  /// Takes one record, as `take` does with each; of a target that does not exist it is dropped. For one thread.
  void add(const request_record& record);
  /// Drops the requests of the index, which is given to another target.
  void forget(std::uint32_t index);
  /// Sets the first thresholds of a target: every request is recorded.
  static void start(socket_chains& chains);
  /// Sets the duration from which on requests of this minute and of the next are recorded. The programs raise it
  /// between two calls. To be called once a second.
  void set_threshold(std::uint32_t index, std::int64_t now_ns, socket_chains& chains);

  [[nodiscard]] std::vector<request_record> slowest(std::uint32_t index, std::int64_t now_ns);
  /// Exemplars for tacho_request_duration_seconds: the slowest of the current and the last minute.
  [[nodiscard]] std::vector<metrics::Exemplar> exemplars(std::uint32_t index, std::int64_t now_ns);

 private:
  void take_locked();

  std::int64_t minute_ns_;
  std::mutex mutex_;
  std::vector<SlowRequests> slowest_;          // by index
  std::optional<kernel::RingBuffer> records_;  // none without anatomy
};

}  // namespace tacho::probes
