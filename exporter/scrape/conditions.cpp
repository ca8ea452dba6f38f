#include "scrape/conditions.h"

namespace tacho::scrape {
namespace {

constexpr std::array<std::string_view, kConditions> kNames{"multiplexed", "busy_polling", "few_samples", "no_poll",
                                                           "lost_events"};
constexpr std::array kFamilies{metrics::Family{
    "tacho_target_condition", metrics::Type::gauge, "",
    "1 while a series of the target may not mean what it says, judged over {window}. multiplexed: connections carry "
    "several requests at a time (pipelining, HTTP/2), so requests are under-counted; busy_polling: most polls do not "
    "wait, so poll durations are "
    "no slack; few_samples: too few operations for rate and variance; no_poll: requests are served without polling "
    "calls; "
    "lost_events: a probe has lost events, or the kernel has kept more than one from the probes for a thousand "
    "requests "
    "of all targets.",
    "condition", kNames}};

/// Above this share of turns with data waiting behind them, a connection carries more than one request at a time.
constexpr double kMultiplexedShare = 0.1;
constexpr double kBusyShare = 0.5;
/// Events that the kernel kept from the programs are anybody's.
constexpr double kSkippedShare = 0.001;

bool share_above(std::uint64_t part, std::uint64_t whole, double limit) {
  return whole > 0 && static_cast<double>(part) > limit * static_cast<double>(whole);
}

}  // namespace

std::span<const metrics::Family> condition_families() {
  return kFamilies;
}

std::string_view condition_name(Condition condition) {
  return kNames.at(static_cast<std::size_t>(condition));
}

void ConditionWatch::push(std::int64_t now_ns, const probes::ConditionCounters& counters, const Losses& losses) {
  samples_.push_back({now_ns, counters, losses});
  while (samples_.size() > 2 && samples_[1].time_ns <= now_ns - window_ns_) {
    samples_.pop_front();
  }
}

double ConditionWatch::request_rate() const {
  if (samples_.size() < 2) {
    return 0;
  }
  const auto gained = samples_.back().counters.requests - samples_.front().counters.requests;
  const auto elapsed_ns = samples_.back().time_ns - samples_.front().time_ns;
  return elapsed_ns > 0 ? static_cast<double>(gained) * 1e9 / static_cast<double>(elapsed_ns) : 0;
}

std::array<bool, kConditions> ConditionWatch::evaluate(bool few_samples) const {
  std::array<bool, kConditions> result{};
  const auto set = [&result](Condition which, bool on) { result[static_cast<std::size_t>(which)] = on; };
  set(Condition::few_samples, few_samples);
  if (samples_.size() < 2) {
    return result;
  }
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  const std::uint64_t requests = last.counters.requests - first.counters.requests;
  const std::uint64_t polls = last.counters.poll_calls - first.counters.poll_calls;
  set(Condition::multiplexed,
      share_above(last.counters.overlapped - first.counters.overlapped, requests, kMultiplexedShare) ||
          share_above(last.counters.repeated - first.counters.repeated, last.counters.sampled - first.counters.sampled,
                      kMultiplexedShare));
  set(Condition::busy_polling,
      share_above(last.counters.poll_nonblocking - first.counters.poll_nonblocking, polls, kBusyShare));
  set(Condition::no_poll, requests > 0 && polls == 0);
  const std::uint64_t skipped = last.losses.skipped - first.losses.skipped;
  const std::uint64_t all = last.losses.requests - first.losses.requests;
  set(Condition::lost_events,
      last.losses.lost != first.losses.lost || static_cast<double>(skipped) > kSkippedShare * static_cast<double>(all));
  return result;
}

}  // namespace tacho::scrape
