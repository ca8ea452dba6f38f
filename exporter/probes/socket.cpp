#include <bpf/socket.skel.h>
#include <bpf/socket_basic.skel.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "base/beside.h"
#include "kernel/iterator.h"
#include "kernel/kernel_types.h"
#include "metrics/buckets.h"
#include "probes/bracket.h"
#include "probes/dependencies.h"
#include "probes/histogram_decode.h"
#include "probes/load.h"
#include "probes/peers.h"
#include "probes/recorder.h"
#include "probes/registry.h"
#include "probes/socket_decode.h"
#include "probes/socket_hooks.h"
#include "probes/socket_setup.h"
#include "probes/target_blocks.h"

namespace tacho::probes {
namespace {

constexpr std::array<std::string_view, 2> kListeners{"socket_list_own_ports", "socket_list_ports"};
constexpr const char* kAdopt = "socket_adopt";
constexpr const char* kAdoptListeners = "socket_adopt_listeners";
struct Sweep {
  std::string_view map;
  std::string_view iterator;
  std::string_view keys;  ///< the same for kernels without iterators
};
constexpr std::array kSweeps{Sweep{"datagram_rings", "socket_sweep_datagrams", "socket_sweep_datagram_keys"},
                             Sweep{"socket_states", "socket_sweep_states", "socket_sweep_state_keys"}};
constexpr std::int64_t kSweepIntervalNs = 2'000'000'000;
constexpr std::array<std::string_view, 3> kBoundedMaps{"listening_ports", "dependency_slots", "datagram_rings"};

class SocketProbe final : public Probe {
 public:
  SocketProbe(std::unique_ptr<kernel::BpfObject> loaded, kernel::MappedArray chains, Dependencies dependencies,
              const Environment& environment, config::AnatomySwitch anatomy)
      : Probe({.name = "socket", .families = socket_families(), .bounded_maps = kBoundedMaps}, std::move(loaded)),
        anatomy_(anatomy),
        chains_(std::move(chains)),
        blocks_("socket", object().map("socket_blocks"), sizeof(socket_shard), environment.shards.shards()),
        dependencies_(std::move(dependencies)),
        intervals_ns_(environment.indices),
        slow_(environment.indices),
        recorder_(environment.indices, anatomy.minute.count()) {
    if (anatomy_.enabled) {
      recorder_.open(object());
    }
  }

  Result<void> add_target(std::uint32_t index) override {
    recorder_.forget(index);
    chains_.at<socket_chains>(index) = {};
    if (anatomy_.enabled) {
      Recorder::start(chains_.at<socket_chains>(index));
    }
    intervals_ns_.at(index) = {};
    slow_.at(index) = {};
    if (auto added = dependencies_.add(index); !added) {
      return added;
    }
    return blocks_.add(index);
  }

  void remove_target(std::uint32_t index) override {
    blocks_.remove(index);
    dependencies_.remove(index);
  }

  Result<void> flush() override {
    // Before any target: an older connection is a server's or a client's by its port, when it is used for the first
    // time.
    if (!std::exchange(ports_listed_, true)) {
      std::ignore = list_ports();  // adopt() tells what fails
    }
    dependencies_.forget_removed();
    auto calls = begin_beside([this] { return dependencies_.flush(); });
    auto done = blocks_.flush();
    auto others = calls.get();
    return done ? others : done;
  }

  Result<void> look_after(Occasion occasion, std::int64_t now_ns) override {
    switch (occasion) {
      case Occasion::targets_added:
        return adopt(kAdopt, "sockets that are older than tacho are not known");
      case Occasion::half_minute:
        return adopt(kAdoptListeners, {});  // of connections their own operations tell
      case Occasion::second:
        break;
    }
    recorder_.take();
    return now_ns < next_sweep_ns_ ? Result<void>() : sweep(now_ns);
  }

  void sample(const Look& look, TargetSample& sample) override {
    SocketSample& part = sample.socket.emplace();
    if (anatomy_.enabled) {
      part.anatomy.emplace();
    }
    for_each_shard(look.index, [&part](const socket_shard& shard) { add_shard(part, shard); });
    complete(part, dependencies_.calls(look.index, asked(look.index), look.in_detail));
    if (!object().attached("receive") || !object().attached("send")) {
      part.counters.turns.reset();
      part.counters.queue_ns.reset();
    } else if (!object().attached("data_ready")) {
      part.counters.queue_ns.reset();
    }
    // Once a second, and not whenever somebody looks.
    if (part.anatomy && !look.in_detail) {
      socket_chains& chains = chains_.at<socket_chains>(look.index);
      part.anatomy->slow_ns = slow_.at(look.index).update(anatomy_.slow, part.duration, look.now_ns);
      __atomic_store_n(&chains.slow_ns, part.anatomy->slow_ns, __ATOMIC_RELAXED);
      recorder_.set_threshold(look.index, look.now_ns, chains);
    }
  }

  std::vector<SlowRequest> slowest(std::uint32_t index, std::int64_t now_ns) override {
    std::vector<SlowRequest> list;
    for (const request_record& record : recorder_.slowest(index, now_ns)) {
      list.push_back(decode(record, dependencies_.names(), dependencies_.peer(index, record.longest_call_peer)));
    }
    return list;
  }

  void read(const Look& look, const metrics::Gauges& gauges, metrics::Row& row) override {
    if (look.in_detail) {
      row.exemplars = recorder_.exemplars(look.index, look.now_ns);  // first: what they are of is counted by then
    }
    SocketSnapshot s = snapshot(look.index);
    for (std::size_t d = 0; d < TACHO_DIRECTIONS; ++d) {
      // Two CPUs out of order take back some nanoseconds; to Prometheus a counter that falls has started anew.
      std::int64_t& exported = intervals_ns_.at(look.index).at(d);
      exported = std::max(exported, s.moments[d].interval_ns);
      s.moments[d].interval_ns = exported;
    }
    decode(s, dependencies_.calls(look.index, asked(look.index), true), gauges, row);
  }

 private:
  /// @param complaint where the program is missing; empty: that has been told
  Result<void> adopt(const char* iterator, std::string_view complaint) {
    const bpf_program* program = object().program(iterator);
    if (program == nullptr) {
      return complaint.empty() ? Result<void>() : fail(std::string(complaint));
    }
    if (auto done = list_ports(); !done) {
      return done;
    }
    return kernel::run_iterator(program);
  }

  /// Ends what nobody ended.
  Result<void> sweep(std::int64_t now_ns) {
    next_sweep_ns_ = now_ns + kSweepIntervalNs;
    for (const Sweep& sweep : kSweeps) {
      const bpf_program* iterator = object().program(sweep.iterator);
      const bpf_program* keys = object().program(sweep.keys);
      if (iterator == nullptr && keys == nullptr) {
        return fail(std::string(sweep.iterator) + " is missing: what gets no reply stays in flight");
      }
      const int map = object().map(sweep.map);
      if (auto done = iterator != nullptr ? kernel::run_map_iterator(iterator, map) : kernel::run_over_keys(keys, map);
          !done) {
        return done;
      }
    }
    return {};
  }

  /// Who listens, on the machine and in tacho's own network.
  Result<void> list_ports() {
    for (const std::string_view pass : kListeners) {
      if (const bpf_program* program = object().program(pass); program != nullptr) {
        if (auto done = kernel::run_iterator(program); !done) {
          return done;
        }
      }
    }
    return {};
  }

  /// The highest slot that the target's programs have asked for.
  [[nodiscard]] std::uint32_t asked(std::uint32_t index) const {
    return __atomic_load_n(&chains_.at<socket_chains>(index).peers, __ATOMIC_ACQUIRE);
  }

  [[nodiscard]] SocketSnapshot snapshot(std::uint32_t index) const {
    SocketSnapshot sum;
    if (anatomy_.enabled) {
      sum.anatomy.emplace();
    }
    for_each_shard(index, [&sum](const socket_shard& shard) { add_shard(sum, shard); });
    if (sum.anatomy) {
      sum.anatomy->unrecorded = load(chains_.at<socket_chains>(index).unrecorded);
    }
    return sum;
  }

  template <class Visit>
  void for_each_shard(std::uint32_t index, Visit visit) const {
    for (std::uint32_t i = 0; i < blocks_.shards(); ++i) {
      if (const auto* shard = blocks_.shard<socket_shard>(index, i)) {
        visit(*shard);
      }
    }
  }

  config::AnatomySwitch anatomy_;
  kernel::MappedArray chains_;  // by index
  TargetBlocks blocks_;
  Dependencies dependencies_;
  std::vector<std::array<std::int64_t, TACHO_DIRECTIONS>> intervals_ns_;  // by index, latest exported
  std::vector<SlowThreshold> slow_;                                       // by index
  Recorder recorder_;
  bool ports_listed_ = false;
  std::int64_t next_sweep_ns_ = 0;
};

}  // namespace

std::vector<kernel::Variant> socket_variants() {
  return {{"socket_storage", kernel::source_of("socket", socket_bpf__elf_bytes),
           socket_hooks(kernel::has_preemptible_tracepoints())},
          {"hash", kernel::source_of("socket", socket_basic_bpf__elf_bytes), socket_basic_hooks()}};
}

Result<std::unique_ptr<Probe>> load_socket_probe(const config::Config& config, const Environment& environment) {
  PeerNames names(config.peers);
  const ThreadRecords threads = find_thread_records(config, environment);
  const auto set_up = socket_setup(environment, names, threads);
  auto object = load_object(socket_variants(), config.probes.socket, environment, set_up);
  if (!object) {
    return std::unexpected(object.error());
  }
  if ((*object)->method("receive") == "tp_btf") {
    if (auto done = load_beside(**object, splice_hooks(), config.probes.socket, environment, set_up); !done) {
      spdlog::debug("receives by splice are not seen: {}", done.error().message);
    }
  }
  auto chains = kernel::MappedArray::open((*object)->map("socket_chains"), sizeof(socket_chains), environment.indices,
                                          kernel::MappedArray::Access::read_write);
  if (!chains) {
    return std::unexpected(chains.error());
  }
  auto dependencies = Dependencies::open(**object, environment.max_peers, std::move(names));
  if (!dependencies) {
    return std::unexpected(dependencies.error());
  }
  if (config.probes.anatomy.enabled && config.probes.sched.enabled) {
    const bool known = threads != ThreadRecords::unknown;
    (*object)->note({"anatomy", known ? environment.threads->method("state") : "none",
                     known ? "" : "the probe sched does not see threads"});
  }
  config::AnatomySwitch anatomy = config.probes.anatomy;
  anatomy.enabled = threads != ThreadRecords::unknown;
  return std::make_unique<SocketProbe>(std::move(*object), std::move(*chains), std::move(*dependencies), environment,
                                       anatomy);
}

}  // namespace tacho::probes
