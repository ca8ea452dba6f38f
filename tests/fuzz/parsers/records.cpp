// What BPF programs tell, in which names and paths are somebody else's, and whose times a torn read may spoil: records
// of iterators, addresses of peers, shards of a target's blocks. The first byte says which.
#include <cstring>
#include <string>
#include <vector>

#include "fuzzer.h"
#include "metrics/series.h"
#include "probes/peers.h"
#include "probes/poll_decode.h"
#include "probes/sched_decode.h"
#include "probes/socket_decode.h"
#include "targets/processes.h"
#include "targets/self.h"

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
void write(std::span<const metrics::Family> families, const metrics::Row& row) {
  const metrics::BucketLayout layout(1);
  const std::array<std::pair<std::string, std::string>, 1> labels{{{"target", "t"}}};
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

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::array kKinds{own_cgroups, processes, peers, sockets, polls, threads};
  if (size > 0) {
    kKinds[data[0] % kKinds.size()](fuzz::text_of(data + 1, size - 1));
  }
  return 0;
}
