#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bpf/socket.h"
#include "config/config.h"
#include "kernel/mapped_array.h"
#include "probes/anatomy.h"
#include "probes/dependencies.h"
#include "probes/peers.h"
#include "probes/probe.h"
#include "probes/recorder.h"
#include "probes/rising.h"
#include "probes/sampling.h"
#include "probes/socket_decode.h"

namespace tacho::probes {

/// What all targets of the probe `socket` have in common; it lives as long as any of them can be read.
struct SocketCommon {
  /// @param memory of map `socket_chains`
  /// @param indices of targets
  SocketCommon(kernel::MappedArray memory, PeerNames peer_names, const config::AnatomySwitch& settings,
               std::size_t indices)
      : chains(std::move(memory)),
        names(std::move(peer_names)),
        anatomy(settings),
        recorder(indices, settings.minute.count()) {}

  kernel::MappedArray chains;  ///< by index
  PeerNames names;
  config::AnatomySwitch anatomy;
  bool sees_turns = false;     ///< receives and sends
  bool sees_arrivals = false;  ///< of data
  bool sees_ends = false;      ///< of connections
  bool sweeps = false;         ///< and so ends what nobody answers
  Recorder recorder;
};

/// A target's sockets. Its shards and slots are its own; the chains and the recorder are by index, and of the next
/// target with that index once this one has given it up.
class SocketAccumulators final : public Accumulators {
 public:
  /// Takes over the index: what is kept by index begins anew.
  SocketAccumulators(std::shared_ptr<SocketCommon> common, std::uint32_t index, kernel::MappedArray shards,
                     DependencySlots slots);

  /// All sockets that are older than the target have been visited: what is found from now on is new.
  /// @param now_ns CLOCK_MONOTONIC
  void adopted(std::int64_t now_ns);

  /// By the thread that owns the probe, before another target gets the index.
  void give_up();

  void sample(const Look& look, TargetSample& sample) override;
  void tick(const Look& look, TargetSample& sample) override;
  void before_shed() override { advance(); }
  void after_shed(tacho_shed level) override;
  void read(const Look& look, const metrics::Gauges& gauges, metrics::Row& row) override;
  std::vector<SlowRequest> slowest(std::int64_t now_ns) override;

 private:
  /// What the programs keep by index.
  struct ByIndex {
    std::uint32_t peers = 0;  ///< the highest slot that they have asked for
    std::uint64_t unrecorded = 0;
  };

  [[nodiscard]] socket_chains& chains() const { return common_->chains.at<socket_chains>(index_); }
  /// Of this target, whichever target has the index now.
  [[nodiscard]] ByIndex by_index() const;
  [[nodiscard]] bool has_given_up() const { return gave_up_.load(std::memory_order_acquire); }
  template <class Visit>
  void for_each_shard(Visit visit) const {
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      visit(shards_.at<socket_shard>(i));
    }
  }
  [[nodiscard]] SocketSnapshot snapshot(std::uint64_t unrecorded) const;
  /// Other connections are to be chosen (bpf/socket_sampling.bpf.h).
  void choose_anew();
  void advance();

  std::shared_ptr<SocketCommon> common_;
  const std::uint32_t index_;
  const kernel::MappedArray shards_;
  const DependencySlots slots_;
  SlowThreshold slow_;  // the owner's
  Sampling sampling_;
  std::array<Rising<std::int64_t>, TACHO_DIRECTIONS> intervals_ns_;
  ByIndex last_;  // once it has given up
  std::atomic<bool> gave_up_ = false;
};

}  // namespace tacho::probes
