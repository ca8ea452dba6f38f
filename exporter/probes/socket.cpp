#include "probes/socket.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <bpf/socket.skel.h>
#include <bpf/socket_basic.skel.h>
#include <spdlog/spdlog.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <future>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>
#include <vector>

#include "kernel/iterator.h"
#include "kernel/kernel_types.h"
#include "kernel/map_keys.h"
#include "metrics/buckets.h"
#include "probes/bracket.h"
#include "probes/histogram_decode.h"
#include "probes/load.h"
#include "probes/peers.h"
#include "probes/recorder.h"
#include "probes/socket_decode.h"
#include "probes/socket_hooks.h"
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
  SocketProbe(std::unique_ptr<kernel::BpfObject> object, kernel::MappedArray chains, const Environment& environment,
              PeerNames names, config::AnatomySwitch anatomy)
      : object_(std::move(object)),
        anatomy_(anatomy),
        names_(std::move(names)),
        chains_(std::move(chains)),
        blocks_("socket", object_->map("socket_blocks"), sizeof(socket_shard), environment.shards.shards()),
        dependencies_("dependency", object_->map("dependency_blocks"), sizeof(dependency), environment.max_peers + 1),
        intervals_ns_(environment.indices),
        slow_(environment.indices),
        recorder_(environment.indices, anatomy.minute.count()) {
    if (anatomy_.enabled) {
      recorder_.open(object_->map("slow_records"));
    }
  }

  [[nodiscard]] std::string_view name() const override { return "socket"; }
  [[nodiscard]] std::span<const metrics::Family> families() const override { return socket_families(); }
  [[nodiscard]] const kernel::BpfObject& object() const override { return *object_; }
  [[nodiscard]] std::span<const std::string_view> bounded_maps() const override { return kBoundedMaps; }

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
    gone_.insert(index);
  }

  Result<void> flush() override {
    // Before any target: an older connection is a server's or a client's by its port, when it is used for the first
    // time.
    if (!std::exchange(ports_listed_, true)) {
      std::ignore = list_ports();  // adopt() tells what fails
    }
    forget_peers();
    auto calls = std::async(std::launch::async, [this] { return dependencies_.flush(); });
    auto done = blocks_.flush();
    auto others = calls.get();
    return done ? others : done;
  }

  Result<void> adopt() override {
    const bpf_program* program = object_->program(kAdopt);
    if (program == nullptr) {
      return fail("sockets that are older than tacho are not known");
    }
    if (auto done = list_ports(); !done) {
      return done;
    }
    return kernel::run_iterator(program);
  }

  /// Of connections their own operations tell.
  Result<void> find_missed() override {
    const bpf_program* program = object_->program(kAdoptListeners);
    if (program == nullptr) {
      return {};  // adopt() has told
    }
    if (auto done = list_ports(); !done) {
      return done;
    }
    return kernel::run_iterator(program);
  }

  Result<void> maintain(std::int64_t now_ns) override {
    recorder_.take();
    if (now_ns < next_sweep_ns_) {
      return {};
    }
    next_sweep_ns_ = now_ns + kSweepIntervalNs;
    for (const Sweep& sweep : kSweeps) {
      const bpf_program* iterator = object_->program(sweep.iterator);
      const bpf_program* keys = object_->program(sweep.keys);
      if (iterator == nullptr && keys == nullptr) {
        return fail(std::string(sweep.iterator) + " is missing: what gets no reply stays in flight");
      }
      const int map = object_->map(sweep.map);
      if (auto done = iterator != nullptr ? kernel::run_map_iterator(iterator, map) : kernel::run_over_keys(keys, map);
          !done) {
        return done;
      }
    }
    return {};
  }

  void sample(std::uint32_t index, std::int64_t /*now_ns*/, metrics::WindowSample& sample) override {
    for_each_shard(index, [&sample](const socket_shard& shard) {
      for (std::size_t d = 0; d < TACHO_DIRECTIONS; ++d) {
        sample.direction[d] += read_moments(shard.moments[d]);
      }
    });
  }

  void count(std::uint32_t index, std::int64_t now_ns, Activity& activity) override {
    ConditionCounters::Turns counters;
    std::uint64_t queue_ns = 0;
    if (anatomy_.enabled) {
      activity.anatomy.emplace();
    }
    for_each_shard(index, [&](const socket_shard& shard) {
      if (activity.anatomy) {
        add_shard(*activity.anatomy, shard);
      }
      add_histogram(activity.duration, shard.duration);
      queue_ns += load(shard.queue.sum_ns);
      counters.overlapped += load(shard.overlapped_turns);
      counters.one_way += load(shard.oneway);
      counters.calls_overlapped += load(shard.calls_overlapped);
      counters.calls_sampled += load(shard.sampled_calls);
      counters.calls_repeated += load(shard.repeated_calls);
      counters.sampled += load(shard.sampled_turns);
      counters.repeated += load(shard.repeated_turns);
    });
    counters.requests = metrics::total(activity.duration);
    if (activity.anatomy) {
      activity.anatomy->slow_ns = slow_.at(index).update(anatomy_.slow, activity.duration, now_ns);
      __atomic_store_n(&chains_.at<socket_chains>(index).slow_ns, activity.anatomy->slow_ns, __ATOMIC_RELAXED);
      recorder_.set_threshold(index, now_ns, chains_.at<socket_chains>(index));
    }
    for_each_dependency(index, [&](std::uint32_t slot, const dependency& entry) {
      metrics::Histogram duration;
      add_histogram(duration, entry.duration);
      const std::uint64_t calls = metrics::total(duration);
      counters.calls += calls;
      if (calls > 0) {
        activity.calls.push_back(
            {.slot = slot, .calls = calls, .ns = duration.sum_ns, .in_line_ns = load(entry.in_line_ns)});
      }
    });
    if (object_->attached("receive") && object_->attached("send")) {
      activity.conditions.turns = counters;
      if (object_->attached("data_ready")) {
        activity.queue_ns = queue_ns;
      }
    }
  }

  void summarize(std::uint32_t index, Summary& summary) override {
    const SocketSnapshot s = snapshot(index);
    summary.requests = requests(s);
    summary.duration = s.duration;
    summary.queue = s.queue;
    summary.in_flight = in_flight(s);
    summary.server_connections = active_connections(s, TACHO_ROLE_SERVER);
    for (DependencySnapshot& dependency : calls(index)) {
      summary.dependencies.push_back({dependency.slot, std::move(dependency.peer), dependency.duration});
    }
  }

  std::vector<SlowRequest> slowest(std::uint32_t index, std::int64_t now_ns) override {
    std::vector<SlowRequest> list;
    for (const request_record& record : recorder_.slowest(index, now_ns)) {
      const auto* longest = record.longest_call_peer < dependencies_.shards()
                                ? dependencies_.shard<dependency>(index, record.longest_call_peer)
                                : nullptr;
      list.push_back(decode(record, names_, longest == nullptr ? nullptr : &longest->peer));
    }
    return list;
  }

  void exemplars(std::uint32_t index, std::int64_t now_ns, metrics::Row& row) override {
    row.exemplars = recorder_.exemplars(index, now_ns);
  }

  void read(std::uint32_t index, std::int64_t /*now_ns*/, const metrics::Window& window, metrics::Row& row) override {
    SocketSnapshot s = snapshot(index);
    for (std::size_t d = 0; d < TACHO_DIRECTIONS; ++d) {
      // Two CPUs out of order take back some nanoseconds; to Prometheus a counter that falls has started anew.
      std::int64_t& exported = intervals_ns_.at(index).at(d);
      exported = std::max(exported, s.moments[d].interval_ns);
      s.moments[d].interval_ns = exported;
    }
    decode(s, calls(index), window, row);
  }

 private:
  /// Who listens, on the machine and in tacho's own network.
  Result<void> list_ports() {
    for (const std::string_view pass : kListeners) {
      if (const bpf_program* program = object_->program(pass); program != nullptr) {
        if (auto done = kernel::run_iterator(program); !done) {
          return done;
        }
      }
    }
    return {};
  }

  /// Slots of the removed targets' peers: an index may be used again, and room is limited.
  void forget_peers() {
    if (gone_.empty()) {
      return;
    }
    const int map = object_->map("dependency_slots");
    const auto keys = kernel::keys_of<peer_key>(map);
    if (!keys) {
      spdlog::error("peers of removed targets keep their places: {}", keys.error().message);
      return;
    }
    for (const peer_key& key : *keys) {
      if (gone_.contains(key.index)) {
        bpf_map_delete_elem(map, &key);
      }
    }
    gone_.clear();
  }

  [[nodiscard]] std::vector<DependencySnapshot> calls(std::uint32_t index) const {
    std::vector<DependencySnapshot> all;
    for_each_dependency(index, [this, &all](std::uint32_t slot, const dependency& entry) {
      DependencySnapshot snapshot;
      snapshot.slot = slot;
      add_histogram(snapshot.duration, entry.duration);
      snapshot.in_line_ns = load(entry.in_line_ns);
      // A slot is named when its first connection is made; slot 0 has no name and is shown once it is used.
      const bool named = __atomic_load_n(&entry.peer.family, __ATOMIC_ACQUIRE) != 0;
      if (named || metrics::total(snapshot.duration) > 0) {
        snapshot.peer = names_.of(entry.peer);
        all.push_back(std::move(snapshot));
      }
    });
    return all;
  }

  template <class Visit>
  void for_each_dependency(std::uint32_t index, Visit visit) const {
    // Slots are given out in order: what was not asked for need not be touched, and takes no memory here.
    const std::uint32_t asked = __atomic_load_n(&chains_.at<socket_chains>(index).peers, __ATOMIC_ACQUIRE);
    for (std::uint32_t slot = 0; slot < dependencies_.shards() && slot <= asked; ++slot) {
      const auto* entry = dependencies_.shard<dependency>(index, slot);
      if (entry == nullptr) {
        break;
      }
      visit(slot, *entry);
    }
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

  std::unique_ptr<kernel::BpfObject> object_;
  config::AnatomySwitch anatomy_;
  PeerNames names_;
  kernel::MappedArray chains_;  // by index
  TargetBlocks blocks_;
  TargetBlocks dependencies_;
  std::vector<std::array<std::int64_t, TACHO_DIRECTIONS>> intervals_ns_;  // by index, latest exported
  std::vector<SlowThreshold> slow_;                                       // by index
  Recorder recorder_;
  bool ports_listed_ = false;
  std::int64_t next_sweep_ns_ = 0;
  std::set<std::uint32_t> gone_;  // removed since the last flush()
};

/// The kernel's tick, which its coarse clocks advance by; 0 if it does not say.
std::uint32_t nanoseconds_of_a_jiffy() {
  timespec tick{};
  return ::clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0 ? static_cast<std::uint32_t>(tick.tv_nsec) : 0;
}

/// Whether TCP reads its clock when data is received: up to Linux 6.18.
std::uint32_t receives_tell_time() {
  constexpr std::pair kLastKernel{6, 18};
  utsname names{};
  std::pair kernel{0, 0};
  char dot = 0;
  if (::uname(&names) != 0 || !(std::istringstream(names.release) >> kernel.first >> dot >> kernel.second)) {
    return 0;
  }
  return static_cast<std::uint32_t>(kernel <= kLastKernel);
}

/// Where the records of threads are, as bpf/socket_anatomy.bpf.h has it.
enum class Threads : std::uint8_t { unknown, in_storage, in_hash };

Threads find_threads(const config::Config& config, const Environment& environment) {
  if (!config.probes.anatomy.enabled || environment.threads == nullptr || !environment.threads->attached("threads")) {
    return Threads::unknown;
  }
  return environment.threads->method("state") == "task_storage" ? Threads::in_storage : Threads::in_hash;
}

Result<void> set_up_threads(kernel::ObjectSetup& setup, Threads threads, const Environment& environment) {
  if (auto done = setup.set_constant("threads_in", static_cast<std::uint32_t>(threads)); !done) {
    return done;
  }
  constexpr std::uint32_t kRecordBytes = 1 << 20;  // four thousand records between two looks
  if (threads == Threads::unknown) {
    return {};
  }
  if (auto done = setup.set_max_entries("slow_records", kRecordBytes); !done) {
    return done;
  }
  for (const char* map : {"sched_states", "latest_reads"}) {
    if (auto done = setup.reuse_map(map, environment.threads->map(map)); !done) {
      return done;
    }
  }
  return {};
}

Result<void> set_up_dependencies(kernel::ObjectSetup& setup, const Environment& environment) {
  if (auto done = setup.set_constant("max_peers", environment.max_peers); !done) {
    return done;
  }
  const auto indices = static_cast<std::uint32_t>(environment.indices);
  if (auto done = setup.set_max_entries("dependency_slots", indices * environment.max_peers); !done) {
    return done;
  }
  if (auto done = setup.set_max_entries("dependency_blocks", indices); !done) {
    return done;
  }
  return setup.set_inner_array("dependency_blocks", sizeof(dependency), environment.max_peers + 1);
}

}  // namespace

Result<std::unique_ptr<Probe>> load_socket_probe(const config::Config& config, const Environment& environment) {
  PeerNames names(config.peers);
  const std::array variants{
      kernel::Variant{"socket_storage", kernel::source_of("socket", socket_bpf__elf_bytes), socket_hooks()},
      kernel::Variant{"hash", kernel::source_of("socket", socket_basic_bpf__elf_bytes), socket_basic_hooks()}};
  const Threads threads = find_threads(config, environment);
  const kernel::BpfObject::Setup set_up = [&environment, &names, threads](kernel::ObjectSetup& setup) -> Result<void> {
    if (auto done = set_up_threads(setup, threads, environment); !done) {
      return done;
    }
    if (auto done = setup.set_constant("preemptible_tracepoints",
                                       static_cast<std::uint32_t>(kernel::has_preemptible_tracepoints()));
        !done) {
      return done;
    }
    if (auto done = setup.set_constant("jiffy_ns", nanoseconds_of_a_jiffy()); !done) {
      return done;
    }
    if (auto done = setup.set_constant("receives_tell_time", receives_tell_time()); !done) {
      return done;
    }
    const auto indices = static_cast<std::uint32_t>(environment.indices);
    if (auto done = setup.set_max_entries("socket_chains", indices); !done) {
      return done;
    }
    if (auto done = set_up_dependencies(setup, environment); !done) {
      return done;
    }
    if (auto done = names.set_up(setup); !done) {
      return done;
    }
    return set_up_blocks(setup, "socket_blocks", sizeof(socket_shard), environment);
  };
  auto object = load_object(variants, config.probes.socket, environment, set_up);
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
  if (auto done = names.publish((*object)->map("peer_networks")); !done) {
    return std::unexpected(done.error());
  }
  if (config.probes.anatomy.enabled && config.probes.sched.enabled) {
    const bool known = threads != Threads::unknown;
    (*object)->note({"anatomy", known ? environment.threads->method("state") : "none",
                     known ? "" : "the probe sched does not see threads"});
  }
  config::AnatomySwitch anatomy = config.probes.anatomy;
  anatomy.enabled = threads != Threads::unknown;
  return std::make_unique<SocketProbe>(std::move(*object), std::move(*chains), environment, std::move(names), anatomy);
}

}  // namespace tacho::probes
