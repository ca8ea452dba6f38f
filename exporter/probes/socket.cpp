#include <bpf/socket.object.h>
#include <bpf/socket_basic.object.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <tuple>
#include <utility>
#include <vector>

#include "base/beside.h"
#include "kernel/iterator.h"
#include "kernel/kernel_types.h"
#include "probes/dependencies.h"
#include "probes/load.h"
#include "probes/peers.h"
#include "probes/registry.h"
#include "probes/socket_accumulators.h"
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
  std::string_view keys;   ///< the same for kernels without iterators over maps,
  std::string_view files;  ///< and over open files, where the keys are nothing that we could give
};
constexpr std::array kSweeps{
    Sweep{"datagram_rings", "socket_sweep_datagrams", "socket_sweep_datagram_keys", {}},
    Sweep{"socket_states", "socket_sweep_states", "socket_sweep_state_keys", "socket_sweep_files"}};
// Every other second, also where the ticks of a second come a little early.
constexpr std::int64_t kSweepIntervalNs = 1'500'000'000;
/// A node has open files by the hundred thousand: to go over all of them may take a hundredth of a CPU.
constexpr std::int64_t kRestFromFiles = 100;
constexpr std::array<std::string_view, 4> kBoundedMaps{"listening_ports", "dependency_slots", "datagram_rings",
                                                       "socket_states"};

class SocketProbe final : public Probe {
 public:
  SocketProbe(std::unique_ptr<kernel::BpfObject> loaded, kernel::MappedArray chains, Dependencies dependencies,
              PeerNames names, const Environment& environment, const config::AnatomySwitch& anatomy)
      : Probe({.name = "socket", .families = socket_families(), .bounded_maps = kBoundedMaps}, std::move(loaded)),
        common_(std::make_shared<SocketCommon>(std::move(chains), std::move(names), anatomy, environment.indices)),
        blocks_("socket", object().map("socket_blocks"), sizeof(socket_shard), environment.shards.shards()),
        dependencies_(std::move(dependencies)),
        targets_(environment.indices) {
    common_->sees_turns = object().attached("receive") && object().attached("send");
    common_->sees_arrivals = object().attached("data_ready");
    common_->sees_ends = object().attached("state_change");
    common_->sweeps = object().attached("sweep");
    if (anatomy.enabled) {
      common_->recorder.open(object());
    }
  }

  Result<std::shared_ptr<Accumulators>> add_target(std::uint32_t index) override {
    auto slots = dependencies_.add(index);
    if (!slots) {
      return std::unexpected(slots.error());
    }
    auto shards = blocks_.add(index);
    if (!shards) {
      dependencies_.remove(index);
      return std::unexpected(shards.error());
    }
    auto& target = targets_.at(index);
    target = std::make_shared<SocketAccumulators>(common_, index, std::move(*shards), std::move(*slots));
    return target;
  }

  void remove_target(std::uint32_t index) override {
    if (const auto target = std::exchange(targets_.at(index), nullptr)) {
      target->give_up();
    }
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
        return adopt_all(now_ns);
      case Occasion::half_minute:
        return adopt(kAdoptListeners, {});  // of connections their own operations tell
      case Occasion::second:
        break;
    }
    common_->recorder.take();
    return sweep(now_ns);
  }

 private:
  Result<void> adopt_all(std::int64_t now_ns) {
    auto done = adopt(kAdopt, "sockets that are older than tacho are not known");
    for (const auto& target : targets_) {
      if (target) {
        target->adopted(now_ns);
      }
    }
    return done;
  }

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
    Result<void> result;
    for (std::size_t i = 0; i < kSweeps.size(); ++i) {
      if (now_ns < next_sweeps_ns_[i]) {
        continue;
      }
      next_sweeps_ns_[i] = now_ns + kSweepIntervalNs;
      if (auto done = run(kSweeps[i], next_sweeps_ns_[i]); !done && result) {
        result = done;
      }
    }
    return result;
  }

  /// @param next when it is due again; later, if it takes long
  Result<void> run(const Sweep& sweep, std::int64_t& next) {
    const int map = object().map(sweep.map);
    if (const bpf_program* iterator = object().program(sweep.iterator)) {
      return kernel::run_map_iterator(iterator, map);
    }
    if (const bpf_program* keys = object().program(sweep.keys)) {
      return kernel::run_over_keys(keys, map);
    }
    const bpf_program* files = sweep.files.empty() ? nullptr : object().program(sweep.files);
    if (files == nullptr) {
      return fail(std::string(sweep.iterator) + " is missing: what gets no reply stays in flight");
    }
    const auto begun = std::chrono::steady_clock::now();
    auto done = kernel::run_iterator(files);
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begun;
    next = std::max(next, next - kSweepIntervalNs + kRestFromFiles * took.count());
    return done;
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

  std::shared_ptr<SocketCommon> common_;
  TargetBlocks blocks_;
  Dependencies dependencies_;
  std::vector<std::shared_ptr<SocketAccumulators>> targets_;  // by index
  bool ports_listed_ = false;
  std::array<std::int64_t, kSweeps.size()> next_sweeps_ns_{};
};

}  // namespace

std::vector<kernel::Variant> socket_variants() {
  return {{"socket_storage", kernel::source_of("socket", socket_object),
           socket_hooks(kernel::has_preemptible_tracepoints())},
          {"hash", kernel::source_of("socket", socket_basic_object), socket_basic_hooks()}};
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
  if (auto named = names.publish(**object); !named) {
    return std::unexpected(named.error());
  }
  auto dependencies = Dependencies::open(**object, environment.max_peers);
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
  return std::make_unique<SocketProbe>(std::move(*object), std::move(*chains), std::move(*dependencies),
                                       std::move(names), environment, anatomy);
}

}  // namespace tacho::probes
