#include "scrape/diagnosis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "probes/slow_requests.h"

namespace tacho::scrape {
namespace {

using Cause = Diagnosis::Cause;
using Kind = Cause::Kind;
using Verdict = Diagnosis::Verdict;
using Parts = std::array<double, TACHO_PARTS>;

// The rules' numbers, which README repeats.
/// Means of fewer requests are accidents.
constexpr double kFewest = 30;
constexpr double kFewestSlow = 10;
/// Of the requests, those whose mode has to be known.
constexpr double kLeastKnown = 0.5;
/// Slower: by this factor, and by this many seconds a request.
constexpr double kSlower = 1.5;
constexpr double kSlowerSeconds = 200e-6;
/// A part of the work is the cause if it makes that share of what came on top; what waits before the work began
/// waits for it.
constexpr double kShareOfGrowth = 0.25;
/// Where most of the time goes: its share, and at least so many seconds a request.
constexpr double kMost = 0.5;
constexpr double kContendedSeconds = 500e-6;
/// Threads lack a CPU if they wait for one in this share of the time in which they could run.
constexpr double kLacksCpu = 0.25;

constexpr std::array kBottleneckFamilies{metrics::Family{
    "tacho_bottleneck", metrics::Type::gauge, "",
    "1 for the part in which slow requests spent half of their time and more over {window}, or over the last "
    "minute where that saw less than 100 requests; else 0. A part appears once it was the bottleneck.",
    "part", probes::kPartNames}};

constexpr bool is_work(std::size_t part) {
  return part >= TACHO_PART_CPU;
}

/// Waits that are no work of the server's own: whoever waits there is kept from it.
constexpr std::array kContention{TACHO_PART_QUEUE, TACHO_PART_HANDOVER, TACHO_PART_RUNQUEUE, TACHO_PART_LOCK,
                                 TACHO_PART_DISK};

double work(const Parts& parts) {
  return std::accumulate(parts.begin() + TACHO_PART_CPU, parts.end(), 0.0);
}

double waiting_share(const Waits& waits) {
  const double could_run = waits.running + waits.runnable;
  return could_run > 0 ? waits.runnable / could_run : 0;
}

bool lacks_cpu(const Waits& now, const Waits* before) {
  const double share = waiting_share(now);
  return share >= kLacksCpu && (before == nullptr || share >= kSlower * waiting_share(*before));
}

/// @param before none: in all
Kind kind_of_cpu(const Waits& now, const Waits* before) {
  const double throttled = now.throttled - (before == nullptr ? 0 : before->throttled);
  return throttled >= kLacksCpu / 2 ? Kind::quota : Kind::cpu;
}

request_part largest(const Parts& parts, bool (*counts)(std::size_t)) {
  std::size_t best = TACHO_PARTS;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    if (counts(part) && (best == TACHO_PARTS || parts.at(part) > parts.at(best))) {
      best = part;
    }
  }
  return static_cast<request_part>(best);
}

/// The peer whose calls took at least half of `seconds` a request longer than before.
std::optional<Waits::Calls> grown_peer(const Waits& now, const Waits& before, double seconds) {
  std::optional<Waits::Calls> most;
  for (Waits::Calls calls : now.calls) {
    const auto known = std::ranges::find(before.calls, calls.slot, &Waits::Calls::slot);
    calls.seconds -= known == before.calls.end() ? 0 : known->seconds;
    if (calls.seconds >= seconds / 2 && (!most || calls.seconds > most->seconds)) {
      most = calls;
    }
  }
  return most;
}

Cause cause_in_work(request_part part, double seconds, const Waits& now, const Waits* before) {
  Cause cause{.part = part, .seconds = seconds};
  if (part == TACHO_PART_RUNQUEUE) {
    cause.kind = kind_of_cpu(now, before);
  } else if (part == TACHO_PART_NETWORK || part == TACHO_PART_EVENT) {
    if (const auto peer = grown_peer(now, before == nullptr ? Waits{} : *before, seconds)) {
      cause.kind = Kind::dependency;
      cause.peer = peer->slot;
    }
  }
  return cause;
}

Cause cause_before_work(const Parts& parts, const Waits& now, const Waits* before) {
  const request_part part =
      parts.at(TACHO_PART_HANDOVER) > parts.at(TACHO_PART_QUEUE) ? TACHO_PART_HANDOVER : TACHO_PART_QUEUE;
  const Kind kind = lacks_cpu(now, before) ? kind_of_cpu(now, before) : Kind::demand;
  return {.kind = kind, .part = part, .seconds = parts.at(part)};
}

bool is_slower(const Waits& now, const std::optional<Waits>& before) {
  return before && before->all.requests >= kFewest && now.all.seconds >= kSlower * before->all.seconds &&
         now.all.seconds - before->all.seconds >= kSlowerSeconds;
}

/// What made requests slower: first what grew in the work itself, since requests that wait for a thread wait for what
/// the threads are at.
Cause cause_of_growth(const Waits& now, const Waits& before) {
  Parts growth{};
  std::ranges::transform(now.all.parts, before.all.parts, growth.begin(), std::minus<>());
  const double in_all = now.all.seconds - before.all.seconds;
  const double in_work = work(growth);
  if (growth.at(TACHO_PART_RECEIVE) >= in_all * kMost) {
    return {.part = TACHO_PART_RECEIVE, .seconds = growth.at(TACHO_PART_RECEIVE)};
  }
  const request_part part = largest(growth, is_work);
  const bool work_is_slower = in_work >= (kSlower - 1) * work(before.all.parts) && in_work >= kSlowerSeconds / 2 &&
                              growth.at(part) >= in_work * kMost;
  if (growth.at(part) >= in_all * kShareOfGrowth || work_is_slower) {
    return cause_in_work(part, growth.at(part), now, &before);
  }
  return cause_before_work(growth, now, &before);
}

std::optional<Cause> cause_of_contention(const Waits& now) {
  const Parts& parts = now.all.parts;
  const auto is_most = [&](request_part part, double of) {
    return parts.at(part) >= kMost * of && parts.at(part) >= kContendedSeconds;
  };
  const auto* const found =
      std::ranges::find_if(kContention, [&](request_part part) { return is_most(part, now.all.seconds); });
  if (found == kContention.end()) {
    return {};
  }
  if (is_work(*found)) {
    return cause_in_work(*found, parts.at(*found), now, nullptr);
  }
  const request_part held_by = largest(parts, is_work);
  if (std::ranges::find(kContention, held_by) != kContention.end() && is_most(held_by, work(parts))) {
    return cause_in_work(held_by, parts.at(held_by), now, nullptr);
  }
  return cause_before_work(parts, now, nullptr);
}

std::optional<request_part> bottleneck_of(const MeanParts& slow) {
  const request_part most = largest(slow.parts, [](std::size_t) { return true; });
  const bool holds = slow.requests >= kFewestSlow && slow.parts.at(most) >= kMost * slow.seconds;
  return holds ? std::optional(most) : std::nullopt;
}

}  // namespace

std::span<const metrics::Family> bottleneck_families() {
  return kBottleneckFamilies;
}

std::optional<Diagnosis> diagnose(const WaitHistory& history) {
  auto periods = history.periods();
  if (!periods) {
    return {};
  }
  Diagnosis diagnosis;
  diagnosis.periods = std::move(*periods);
  const Waits& now = diagnosis.periods.now;
  if (now.requests < kFewest) {
    return diagnosis;
  }
  if (now.all.requests < kLeastKnown * now.requests) {
    diagnosis.verdict = Verdict::unseen;
    return diagnosis;
  }
  diagnosis.bottleneck = bottleneck_of(now.slow);
  const bool than_minutes = is_slower(now, diagnosis.periods.five_minutes);
  diagnosis.than_hour = !than_minutes && is_slower(now, diagnosis.periods.hour);
  if (than_minutes || diagnosis.than_hour) {
    diagnosis.verdict = Verdict::slower;
    diagnosis.cause = cause_of_growth(now, *diagnosis.compared());
  } else {
    diagnosis.cause = cause_of_contention(now);
    diagnosis.verdict = diagnosis.cause ? Verdict::contended : Verdict::steady;
  }
  return diagnosis;
}

metrics::Row bottleneck_row(std::optional<request_part> bottleneck, std::uint32_t seen) {
  metrics::Row row;
  for (std::uint32_t part = 0; part < TACHO_PARTS; ++part) {
    const bool was = (seen & (1U << part)) != 0;
    row.values.push_back(was ? metrics::Value::count(bottleneck == static_cast<request_part>(part) ? 1 : 0)
                             : metrics::Value::absent());
  }
  return row;
}

}  // namespace tacho::scrape
