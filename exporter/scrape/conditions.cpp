#include "scrape/conditions.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>

namespace tacho::scrape {
namespace {

using Turns = probes::ConditionCounters::Turns;
using Polls = probes::ConditionCounters::Polls;

/// Above this share of turns with data waiting behind them, a connection carries more than one request at a time.
constexpr double kMultiplexedShare = 0.1;
constexpr double kBusyShare = 0.5;
/// Of messages without a reply among all that were read.
constexpr double kOneWayShare = 0.1;
/// Events that the kernel kept from the programs are anybody's.
constexpr double kSkippedShare = 0.001;

bool share_above(std::uint64_t part, std::uint64_t whole, double limit) {
  return whole > 0 && static_cast<double>(part) > limit * static_cast<double>(whole);
}

std::string help() {
  std::string text =
      "1 while series of the target may not mean what they say, judged over {window}; absent where that cannot be "
      "seen. "
      "Each condition is about the families that it names, and about no other.";
  for (const ConditionEntry& condition : condition_table()) {
    text += fmt::format(" {}: {} ({}).", condition.name, condition.meaning, fmt::join(condition.invalidates, ", "));
  }
  return text;
}

std::array<std::string_view, kConditions> names() {
  std::array<std::string_view, kConditions> list;
  std::ranges::transform(condition_table(), list.begin(), &ConditionEntry::name);
  return list;
}

bool is_multiplexed(const Turns& from, const Turns& to) {
  return share_above(to.overlapped - from.overlapped, to.requests - from.requests, kMultiplexedShare) ||
         share_above(to.repeated - from.repeated, to.sampled - from.sampled, kMultiplexedShare);
}

bool calls_are_multiplexed(const Turns& from, const Turns& to) {
  return share_above(to.calls_overlapped - from.calls_overlapped, to.calls - from.calls, kMultiplexedShare) ||
         share_above(to.calls_repeated - from.calls_repeated, to.calls_sampled - from.calls_sampled, kMultiplexedShare);
}

}  // namespace

std::span<const metrics::Family> condition_families() {
  static const std::string text = help();
  static const std::array values = names();
  static const std::array families{
      metrics::Family{"tacho_target_condition", metrics::Type::gauge, "", text, "condition", values}};
  return families;
}

std::string_view condition_name(Condition condition) {
  return entry(condition).name;
}

std::vector<std::string_view> holding(const Conditions& conditions) {
  std::vector<std::string_view> list;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions.at(i).value_or(false)) {
      list.push_back(condition_table()[i].name);
    }
  }
  return list;
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
  const auto requests = [](const Sample& sample) { return sample.counters.turns.value_or(Turns{}).requests; };
  const auto gained = requests(samples_.back()) - requests(samples_.front());
  const auto elapsed_ns = samples_.back().time_ns - samples_.front().time_ns;
  return elapsed_ns > 0 ? static_cast<double>(gained) * 1e9 / static_cast<double>(elapsed_ns) : 0;
}

Conditions ConditionWatch::evaluate(bool few_samples) const {
  Conditions result{};
  const auto set = [&result](Condition which, bool on) { result[static_cast<std::size_t>(which)] = on; };
  if (samples_.empty()) {
    return result;
  }
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  const auto& turns = last.counters.turns;
  const auto& polls = last.counters.polls;
  // All counters begin at 0, so a first sample in which a probe had no say yet is as good.
  const Turns turns_before = first.counters.turns.value_or(Turns{});
  const Polls polls_before = first.counters.polls.value_or(Polls{});
  if (turns) {
    set(Condition::few_samples, few_samples);
    set(Condition::multiplexed, is_multiplexed(turns_before, *turns));
    const std::uint64_t one_way = turns->one_way - turns_before.one_way;
    set(Condition::one_way, share_above(one_way, turns->requests - turns_before.requests + one_way, kOneWayShare));
    set(Condition::multiplexed_calls, calls_are_multiplexed(turns_before, *turns));
  }
  if (polls) {
    set(Condition::busy_polling,
        share_above(polls->nonblocking - polls_before.nonblocking, polls->calls - polls_before.calls, kBusyShare));
  }
  if (turns && polls) {
    set(Condition::no_poll, turns->requests > turns_before.requests && polls->calls == polls_before.calls);
  }
  if (last.counters.frozen) {
    set(Condition::frozen, *last.counters.frozen);
  }
  const std::uint64_t skipped = last.losses.skipped - first.losses.skipped;
  const std::uint64_t all = last.losses.requests - first.losses.requests;
  set(Condition::lost_events,
      last.losses.lost != first.losses.lost || static_cast<double>(skipped) > kSkippedShare * static_cast<double>(all));
  return result;
}

}  // namespace tacho::scrape
