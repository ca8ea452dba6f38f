#include "probes/socket_accumulators.h"

#include <utility>

#include "probes/bracket.h"

namespace tacho::probes {
namespace {

/// For a new target. A reader that finds what is set here finds as well that the target before has given up the index.
void reset(socket_chains& chains) {
  for (socket_chain& chain : chains.direction) {
    chain = {};
  }
  __atomic_store_n(&chains.peers, 0, __ATOMIC_RELEASE);
  chains.spare = 0;
  chains.slow_ns = 0;
  __atomic_store_n(&chains.unrecorded, 0, __ATOMIC_RELEASE);
  chains.record = {};
  __atomic_store_n(&chains.connections, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&chains.adopted_at, 0, __ATOMIC_RELAXED);
}

}  // namespace

SocketAccumulators::SocketAccumulators(std::shared_ptr<SocketCommon> common, std::uint32_t index,
                                       kernel::MappedArray shards, DependencySlots slots)
    : common_(std::move(common)), index_(index), shards_(std::move(shards)), slots_(std::move(slots)) {
  common_->recorder.forget(index);
  reset(chains());
  if (common_->anatomy.enabled) {
    Recorder::start(chains());
  }
}

void SocketAccumulators::adopted(std::int64_t now_ns) {
  if (chains().adopted_at == 0) {
    __atomic_store_n(&chains().adopted_at, static_cast<std::uint64_t>(now_ns), __ATOMIC_RELEASE);
  }
}

void SocketAccumulators::give_up() {
  last_ = by_index();
  gave_up_.store(true, std::memory_order_release);
}

SocketAccumulators::ByIndex SocketAccumulators::by_index() const {
  const socket_chains& now = chains();
  const ByIndex found{.peers = __atomic_load_n(&now.peers, __ATOMIC_ACQUIRE), .unrecorded = load(now.unrecorded)};
  // Asked behind the loads: if they found the next target's values, this one had given up before.
  return has_given_up() ? last_ : found;
}

void SocketAccumulators::sample(const Look& look, TargetSample& sample) {
  SocketSample& part = sample.socket.emplace();
  if (common_->anatomy.enabled) {
    part.anatomy.emplace();
  }
  for_each_shard([&part](const socket_shard& shard) { add_shard(part, shard); });
  sampling_.add_to(part);
  complete(part, slots_.calls(by_index().peers, look.in_detail ? &common_->names : nullptr));
  if (!common_->sees_turns) {
    part.counters.turns.reset();
    part.counters.queue_ns.reset();
  } else if (!common_->sees_arrivals) {
    part.counters.queue_ns.reset();
  }
  part.knows_in_flight = common_->sees_turns && common_->sees_ends && common_->sweeps;
  part.knows_connections = common_->sees_ends;
}

void SocketAccumulators::tick(const Look& look, TargetSample& sample) {
  advance();
  this->sample(look, sample);
  SocketSample& part = *sample.socket;
  if (part.anatomy) {
    part.anatomy->slow_ns = slow_.update(common_->anatomy.slow, part.duration, look.now_ns);
    __atomic_store_n(&chains().slow_ns, part.anatomy->slow_ns, __ATOMIC_RELAXED);
    common_->recorder.set_threshold(index_, look.now_ns, chains());
  }
}

void SocketAccumulators::read(const Look& look, const metrics::Gauges& gauges, metrics::Row& row) {
  if (look.in_detail) {
    // First: what they are of is counted by then.
    auto exemplars = common_->recorder.exemplars(index_, look.now_ns);
    if (!has_given_up()) {
      row.exemplars = std::move(exemplars);
    }
  }
  const ByIndex kept = by_index();
  SocketSnapshot s = snapshot(kept.unrecorded);
  sampling_.add_to(s);
  for (std::size_t d = 0; d < TACHO_DIRECTIONS; ++d) {
    // Two CPUs out of order take back some nanoseconds; to Prometheus a counter that falls has started anew.
    s.moments[d].interval_ns = intervals_ns_.at(d).raise(s.moments[d].interval_ns);
  }
  decode(s, slots_.calls(kept.peers, &common_->names), gauges, row);
}

std::vector<SlowRequest> SocketAccumulators::slowest(std::int64_t now_ns) {
  const auto records = common_->recorder.slowest(index_, now_ns);
  std::vector<SlowRequest> list;
  if (has_given_up()) {
    return list;
  }
  for (const request_record& record : records) {
    list.push_back(decode(record, common_->names, slots_.peer(record.longest_call_peer)));
  }
  return list;
}

void SocketAccumulators::after_shed(tacho_shed level) {
  if (level >= TACHO_SHED_SOCKETS) {
    sampling_.begin(snapshot(0));
  } else if (sampling_.active()) {
    sampling_.end();
    choose_anew();  // the next time
  }
}

void SocketAccumulators::choose_anew() {
  __atomic_store_n(&chains().connections, 0, __ATOMIC_RELAXED);
  __atomic_fetch_add(&chains().choice, 1, __ATOMIC_RELAXED);
}

void SocketAccumulators::advance() {
  if (sampling_.active() && !sampling_.advance(snapshot(0))) {
    choose_anew();
  }
}

SocketSnapshot SocketAccumulators::snapshot(std::uint64_t unrecorded) const {
  SocketSnapshot sum;
  if (common_->anatomy.enabled) {
    sum.anatomy.emplace();
  }
  for_each_shard([&sum](const socket_shard& shard) { add_shard(sum, shard); });
  if (sum.anatomy) {
    sum.anatomy->unrecorded = unrecorded;
  }
  return sum;
}

}  // namespace tacho::probes
