#include "probes/sampling.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "metrics/buckets.h"
#include "metrics/gain.h"

namespace tacho::probes {
namespace {

/// Visits what is estimated of three snapshots, member by member: counters and histograms.
template <class Visit, class... Snapshots>
void for_each_estimate(Visit visit, Snapshots&... s) {
  visit(s.queue...);
  visit(s.receive...);
  visit(s.service...);
  visit(s.duration...);
  visit(s.reply...);
  visit(s.unanswered...);
  visit(s.oneway...);
  visit(s.unseen_replies...);
  visit(s.handshakes...);
  visit(s.overlapped...);
}

/// Adds `times` what a counter has gained.
struct AddGain {
  double times;

  void operator()(std::uint64_t& sum, const std::uint64_t& from, const std::uint64_t& to) const {
    sum += static_cast<std::uint64_t>(std::llround(static_cast<double>(metrics::gain(from, to)) * times));
  }
  template <std::size_t PerOctave>
  void operator()(metrics::SlotHistogram<PerOctave>& sum, const metrics::SlotHistogram<PerOctave>& from,
                  const metrics::SlotHistogram<PerOctave>& to) const {
    for (std::size_t slot = 0; slot < sum.slots.size(); ++slot) {
      (*this)(sum.slots.at(slot), from.slots.at(slot), to.slots.at(slot));
    }
    (*this)(sum.sum_ns, from.sum_ns, to.sum_ns);
  }
};

/// Turns that are to have begun: as many as have ended, so that none of them is in flight.
std::uint64_t begun(const SocketSnapshot& more) {
  return requests(more) + more.unanswered;
}

}  // namespace

void Sampling::begin(const SocketSnapshot& now) {
  from_ = std::make_unique<const SocketSnapshot>(now);
}

bool Sampling::advance(const SocketSnapshot& now) {
  const std::uint64_t aside = metrics::gain(from_->aside, now.aside);
  const std::uint64_t chosen = metrics::gain(from_->chosen, now.chosen);
  if (aside > 0 && chosen == 0) {
    return false;
  }
  if (aside > 0) {
    const auto before = more_.get();
    auto more = before ? std::make_shared<SocketSnapshot>(*before) : std::make_shared<SocketSnapshot>();
    for_each_estimate(AddGain{static_cast<double>(aside) / static_cast<double>(chosen)}, *more, *from_, now);
    more_.set(std::move(more));
  }
  from_ = std::make_unique<const SocketSnapshot>(now);
  return true;
}

void Sampling::add_to(SocketSnapshot& snapshot) const {
  if (const auto more = more_.get()) {
    for_each_estimate([](auto& sum, const auto& each) { sum += each; }, snapshot, *more);
    snapshot.opened += begun(*more);
  }
}

void Sampling::add_to(SocketSample& sample) const {
  const auto more = more_.get();
  if (!more) {
    return;
  }
  sample.duration += more->duration;
  sample.in_flight += requests(*more);  // completions are taken away
  metrics::SocketCounters& counters = sample.counters;
  if (counters.queue_ns) {
    *counters.queue_ns += more->queue.sum_ns;
  }
  if (counters.turns) {
    counters.turns->overlapped += more->overlapped;
    counters.turns->one_way += more->oneway;
  }
}

}  // namespace tacho::probes
