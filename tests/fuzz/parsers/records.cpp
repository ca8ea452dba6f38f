// What BPF programs tell, in which names and paths are somebody else's, and whose times a torn read may spoil: records
// of iterators and of ring buffers, addresses of peers, shards of a target's blocks. The first byte says which.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fuzzer.h"
#include "metrics/series.h"
#include "page/json.h"
#include "probes/peers.h"
#include "probes/poll_decode.h"
#include "probes/recorder.h"
#include "probes/sched_decode.h"
#include "probes/socket_decode.h"
#include "targets/processes.h"
#include "targets/self.h"
#include "targets/target_events.h"

using namespace tacho;
using fuzz::require;

namespace {

/// As many as there are bytes for, the last one filled with zeros.
template <class Record>
std::vector<Record> records_of(std::string_view bytes) {
  std::vector<Record> records((bytes.size() + sizeof(Record) - 1) / sizeof(Record));
  if (!bytes.empty()) {
    std::memcpy(records.data(), bytes.data(), bytes.size());
  }
  return records;
}

/// The page of a target with such values can be written.
void write(std::span<const metrics::Family> families, const metrics::Row& row,
           const targets::Labels& labels = {{"target", "t"}}) {
  const metrics::BucketLayout layout(1);
  const metrics::TargetSeries series(families, labels, layout);
  std::string text;
  for (std::size_t family = 0; family < families.size(); ++family) {
    series.append(text, family, row);
  }
  require(text.empty() || text.ends_with('\n'), "lines are whole");
  require(text.find('\0') == std::string::npos, "a page is text");
}

void own_cgroups(std::string_view bytes) {
  const auto own = targets::own_cgroups_of(records_of<own_cgroup>(bytes));
  if (own) {
    require(own->path.starts_with('/'), "a path begins at the root");
    for (const auto& [path, id] : own->cgroups) {
      require(path.starts_with('/') && targets::is_around_self(own->path, own->path), "a path begins at the root");
    }
  }
}

void processes(std::string_view bytes) {
  const auto records = records_of<process_record>(bytes);
  require(targets::processes_of(records, "/nonexistent").size() <= records.size(), "no process is made up");
}

void peers(std::string_view bytes) {
  const config::PeerName known{.name = "database", .networks = {"10.0.0.0/8"}};
  const probes::PeerNames names(std::span(&known, 1));
  for (const peer_address& peer : records_of<peer_address>(bytes)) {
    const std::string name = names.of(peer);
    require(!name.empty() && name.find('\0') == std::string::npos, "a peer has a name");
  }
}

void sockets(std::string_view bytes) {
  probes::SocketSnapshot snapshot;
  snapshot.anatomy.emplace();
  for (const socket_shard& shard : records_of<socket_shard>(bytes)) {
    probes::add_shard(snapshot, shard);
  }
  metrics::Row row;
  probes::decode(snapshot, {}, metrics::Gauges{}, row);
  write(probes::socket_families(), row);
}

void polls(std::string_view bytes) {
  probes::PollSnapshot snapshot;
  for (const poll_shard& shard : records_of<poll_shard>(bytes)) {
    probes::add_shard(snapshot, shard);
  }
  metrics::Row row;
  probes::decode(snapshot, snapshot.times.total_ns(1'000'000'000), metrics::Gauges{}, row);
  write(probes::poll_families(), row);
}

void threads(std::string_view bytes) {
  const auto shards = records_of<sched_shard>(bytes);
  std::vector<const sched_shard*> pointers;
  probes::ThreadLimits limits;
  for (const sched_shard& shard : shards) {
    pointers.push_back(&shard);
    probes::add_affinity(limits, shard, 1'000'000'000);
  }
  probes::SchedTotals totals;
  const auto before = totals;
  totals.raise(probes::read_times(pointers, [] { return std::int64_t{1'000'000'000}; }));
  for (std::size_t i = 0; i < totals.state_ns.size(); ++i) {
    require(totals.state_ns[i] >= before.state_ns[i], "a counter never falls");
  }
  metrics::Row row;
  probes::decode({}, totals, {}, row);
  write(probes::sched_families(), row);
}

/// Of a whole machine, whose targets are planned then.
void events(std::string_view bytes) {
  static const auto rules = targets::TargetRules::compile(config::Config{});
  require(rules.has_value(), "the default configuration is one");
  targets::World world;
  world.cgroups["/"] = 1;
  for (target_event& event : records_of<target_event>(bytes)) {
    event.kind = TACHO_CGROUP_CREATED + event.kind % TACHO_PROCESS_EXITED;
    const auto path = targets::path_of(event);
    require(!path || (!path->empty() && path->size() < TACHO_EVENT_PATH), "a path is inside of its event");
    if (event.kind <= TACHO_CGROUP_REMOVED) {
      if (path) {
        targets::note_cgroup(world, event, *path);
        require(event.kind == TACHO_CGROUP_REMOVED || world.cgroups.at(*path) == event.cgroup, "what is made is there");
      }
    } else if (event.kind <= TACHO_LISTENER_CLOSED) {
      const std::size_t before = world.listeners.size();
      const bool added = targets::note_listener(world, event);
      require(added ? world.listeners.size() == before + 1 : world.listeners.size() <= before, "listeners add up");
    } else {
      targets::forget_process(world, event.tgid);
      if (event.kind == TACHO_PROCESS_EXECUTED) {
        world.processes[event.tgid] = {
            .tgid = event.tgid, .parent = event.network, .user = event.port_free, .executable = path.value_or("[a]")};
      }
    }
  }
  for (const targets::DesiredTarget& target : rules->plan(world, {})) {
    require(!target.name.empty() && !target.labels.empty() && target.labels.front().first == "target",
            "a target has a name");
    for (const std::uint64_t cgroup : target.cgroups) {
      require(std::ranges::any_of(world.cgroups, [cgroup](const auto& known) { return known.second == cgroup; }),
              "no cgroup is made up");
    }
    write({}, {}, target.labels);
  }
}

void slow_requests(std::string_view bytes) {
  constexpr std::int64_t kMinute = 1'000'000'000;
  constexpr std::size_t kTargets = 2;
  probes::Recorder recorder(kTargets, kMinute);
  std::int64_t now = 0;
  const auto records = records_of<request_record>(bytes);
  for (const request_record& record : records) {
    recorder.add(record);
    now = std::max(now, static_cast<std::int64_t>(record.ended));
  }
  const probes::PeerNames names(std::span<const config::PeerName>{});
  scrape::SlowView view{.time = {}, .now_ns = now, .targets = {}};
  for (std::uint32_t index = 0; index < kTargets; ++index) {
    socket_chains chains{};
    probes::Recorder::start(chains);
    recorder.set_threshold(index, now, chains);
    metrics::Row row;
    row.exemplars = recorder.exemplars(index, now);
    write(probes::socket_families(), row);
    scrape::SlowView::Target target{.id = "0", .name = "t", .requests = {}};
    for (const request_record& record : recorder.slowest(index, now)) {
      target.requests.push_back(probes::decode(record, names, nullptr));
    }
    require(target.requests.size() <= records.size(), "no request is made up");
    require(std::ranges::is_sorted(target.requests, std::greater{}, &probes::SlowRequest::duration_ns),
            "the slowest request comes first");
    view.targets.push_back(std::move(target));
  }
  require(nlohmann::json::accept(page::slow_json(view)), "a list of slow requests is JSON");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array kKinds{own_cgroups, processes, peers, sockets, polls, threads, events, slow_requests};
  if (size > 0) {
    kKinds[data[0] % kKinds.size()](fuzz::text_of(data + 1, size - 1));
  }
  return 0;
}
