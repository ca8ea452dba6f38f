#include "scrape/conditions.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>

namespace tacho::scrape {
namespace {

using Polls = metrics::PollCounters;

/// Above this share of turns with data waiting behind them, a connection carries more than one request at a time.
constexpr double kMultiplexedShare = 0.1;
constexpr double kBusyShare = 0.5;
/// Of requests for which no poll slept.
constexpr double kUnseenShare = 0.5;
/// Of messages without a reply among all that were read.
constexpr double kOneWayShare = 0.1;
/// Events that the kernel kept from the programs are anybody's.
constexpr double kSkippedShare = 0.001;

bool share_above(std::uint64_t part, std::uint64_t whole, double limit) {
  return whole > 0 && static_cast<double>(part) > limit * static_cast<double>(whole);
}

std::string help() {
  std::string text =
      "1 while some series of the target may be wrong, judged over {window}; absent where that cannot be judged. A "
      "condition is about the families that it names, and no other.";
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

bool is_multiplexed(const metrics::TurnCounters& from, const metrics::TurnCounters& to) {
  return share_above(to.overlapped - from.overlapped, to.requests - from.requests, kMultiplexedShare) ||
         share_above(to.repeated - from.repeated, to.sampled - from.sampled, kMultiplexedShare);
}

bool calls_are_multiplexed(const metrics::TurnCounters& from, const metrics::TurnCounters& to) {
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

std::vector<std::string_view> holding(const Conditions& conditions) {
  std::vector<std::string_view> list;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions.at(i).value_or(false)) {
      list.push_back(condition_table()[i].name);
    }
  }
  return list;
}

Conditions conditions(const metrics::WindowSample& older, const metrics::WindowSample& newer, bool few_samples,
                      std::optional<ShedLevel> shed) {
  Conditions result{};
  const auto set = [&result](Condition which, bool on) { result[static_cast<std::size_t>(which)] = on; };
  // All counters begin at 0, so an older sample in which a probe had no say yet is as good.
  const auto turns_of = [](const metrics::WindowSample& sample) {
    return sample.socket ? sample.socket->turns : std::nullopt;
  };
  const auto turns = turns_of(newer);
  const metrics::TurnCounters turns_before = turns_of(older).value_or(metrics::TurnCounters{});
  // What stands still is no evidence.
  const auto& polls = shed >= TACHO_SHED_POLLS ? std::nullopt : newer.poll;
  const Polls polls_before = older.poll.value_or(Polls{});
  if (turns) {
    if (shed.value_or(TACHO_SHED_NOTHING) < TACHO_SHED_INTERVALS) {
      set(Condition::few_samples, few_samples);
    }
    set(Condition::multiplexed, is_multiplexed(turns_before, *turns));
    const std::uint64_t one_way = turns->one_way - turns_before.one_way;
    set(Condition::one_way, share_above(one_way, turns->requests - turns_before.requests + one_way, kOneWayShare));
    set(Condition::multiplexed_calls, calls_are_multiplexed(turns_before, *turns));
    // Where they are seen, they always are: nothing is to be judged.
    if (!newer.socket->queue_ns) {
      set(Condition::unseen_arrivals, true);
    }
  }
  if (polls && !polls->only_sleeps) {
    set(Condition::busy_polling, share_above(polls->nonblocking - polls_before.nonblocking,
                                             polls->completed - polls_before.completed, kBusyShare));
  }
  if (turns && polls) {
    const std::uint64_t requests = turns->requests - turns_before.requests;
    const std::uint64_t completed = polls->completed - polls_before.completed;
    // A server that is busy throughout polls without a sleep.
    set(Condition::no_poll, requests > 0 && completed == 0 && (!polls->only_sleeps || polls->started == 0));
    if (polls->only_sleeps) {
      set(Condition::unseen_polls,
          polls->started > 0 && share_above(requests - std::min(requests, completed), requests, kUnseenShare));
    }
  }
  if (newer.threads && newer.threads->frozen) {
    set(Condition::frozen, *newer.threads->frozen);
  }
  const std::uint64_t skipped = newer.losses.skipped - older.losses.skipped;
  const std::uint64_t all = newer.losses.requests - older.losses.requests;
  if (shed) {
    set(Condition::shed, *shed >= TACHO_SHED_INTERVALS);
    set(Condition::shed_requests, *shed >= TACHO_SHED_STREAMS);
  }
  set(Condition::lost_events, newer.losses.lost != older.losses.lost ||
                                  static_cast<double>(skipped) > kSkippedShare * static_cast<double>(all));
  return result;
}

}  // namespace tacho::scrape
