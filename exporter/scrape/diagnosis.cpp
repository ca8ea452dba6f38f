#include "scrape/diagnosis.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "probes/slow_requests.h"

namespace tacho::scrape {
namespace {

using Kind = Cause::Kind;
using Verdict = Diagnosis::Verdict;
using Parts = std::array<double, TACHO_PARTS>;

// The rules' numbers, which README repeats.
/// Means of fewer requests are accidents.
constexpr double kFewest = 30;
/// Of the requests, those whose mode has to be known.
constexpr double kLeastKnown = 0.5;
/// Slower: by this factor, and by this many seconds a request.
constexpr double kSlower = 1.5;
constexpr double kSlowerSeconds = 200e-6;
/// A part is a cause if it makes that share of what came on top.
constexpr double kShareOfGrowth = 0.25;
/// Where most of the time goes: its share, and at least so many seconds a request.
constexpr double kMost = 0.5;
constexpr double kContendedSeconds = 500e-6;
/// Threads lack a CPU if they wait for one in this share of the time in which they could run; a quota is the reason if
/// it takes that share of their wait.
constexpr double kLacksCpu = 0.25;
/// More requests come: by this factor; or the target runs on that share of its CPUs.
constexpr double kMoreRequests = 1.2;
constexpr double kBusy = 0.8;
/// A peer is slower if its calls take that much longer each.
constexpr double kSlowerCalls = 1.2;

constexpr std::array kBottleneckFamilies{metrics::Family{
    "tacho_bottleneck", metrics::Type::gauge, "",
    "1 for the part in which slow requests spent at least half of their time, else 0: over {window}, or over the last "
    "minute or five minutes where fewer than ten requests were slow. A part has a series once it was the bottleneck.",
    "part", probes::kPartNames}};

/// Waits that are no work of the server's own: whoever waits there is kept from it.
constexpr std::array kContention{TACHO_PART_QUEUE, TACHO_PART_HANDOVER, TACHO_PART_RUNQUEUE, TACHO_PART_LOCK,
                                 TACHO_PART_DISK};

/// In which a thread waits that has called somebody, itself or by another thread.
constexpr bool may_be_a_call(request_part part) {
  return part == TACHO_PART_NETWORK || part == TACHO_PART_EVENT || part == TACHO_PART_LOCK ||
         part == TACHO_PART_HANDOVER;
}

double work(const Parts& parts) {
  return std::accumulate(parts.begin() + TACHO_PART_CPU, parts.end(), 0.0);
}

/// @param before none: in all
bool lacks_cpu(const Waits& now, const Waits* before) {
  // Compared are waits for as long a time on a CPU: a share that is large cannot grow by much.
  return now.runnable >= kLacksCpu * (now.running + now.runnable) && now.runnable > 0 &&
         (before == nullptr || now.runnable * before->running >= kSlower * before->runnable * now.running);
}

Kind kind_of_cpu(const Waits& now) {
  return now.throttled >= kLacksCpu * now.runnable ? Kind::quota : Kind::cpu;
}

/// The peer whose calls make at least half of `seconds` a request, and no more than the whole request: they take longer
/// each than before, or they are made by threads that have a request to answer. Others are of the target's own.
std::optional<Waits::Calls> called_meanwhile(const Waits& now, const Waits& before, double seconds, double whole) {
  std::optional<Waits::Calls> most;
  for (const Waits::Calls& calls : now.calls) {
    const auto known = std::ranges::find(before.calls, calls.slot, &Waits::Calls::slot);
    const Waits::Calls was = known == before.calls.end() ? Waits::Calls{} : *known;
    Waits::Calls growth = calls;
    growth.seconds -= was.seconds;
    growth.in_line -= was.in_line;
    const bool take_longer =
        was.calls > 0 ? calls.seconds / calls.calls >= kSlowerCalls * was.seconds / was.calls : calls.calls > 0;
    const bool fits = take_longer && growth.seconds >= kMost * seconds && growth.seconds <= kSlower * whole;
    if (!fits && growth.in_line < kMost * seconds) {
      continue;
    }
    growth.seconds = fits ? growth.seconds : growth.in_line;
    if (!most || growth.seconds > most->seconds) {
      most = growth;
    }
  }
  return most;
}

/// @param seconds that the part has grown by
/// @param whole that the request has grown by
Cause cause_of_part(request_part part, double seconds, double whole, const Waits& now, const Waits& before) {
  Cause cause;
  cause.part = part;
  cause.seconds = seconds;
  if (part == TACHO_PART_RUNQUEUE && lacks_cpu(now, &before)) {
    cause.kind = kind_of_cpu(now);
  } else if (may_be_a_call(part)) {
    if (const auto peer = called_meanwhile(now, before, seconds, whole)) {
      cause.kind = Kind::dependency;
      cause.peer = peer->slot;
      cause.seconds = std::min(seconds, peer->seconds);
    }
  }
  return cause;
}

bool is_more(const Waits& now, const Waits& before) {
  return now.rate() >= kMoreRequests * before.rate() || (now.cores > 0 && now.running >= kBusy * now.cores);
}

/// Requests wait before a thread is at them: they wait for what the threads are at, if that takes longer.
Cause cause_before_work(const Parts& growth, double whole, const Waits& now, const Waits& before) {
  const auto part =
      growth.at(TACHO_PART_HANDOVER) > growth.at(TACHO_PART_QUEUE) ? TACHO_PART_HANDOVER : TACHO_PART_QUEUE;
  Cause cause = cause_of_part(part, growth.at(part), whole, now, before);
  if (cause.kind == Kind::dependency) {
    return cause;
  }
  const request_part held_by = largest_part(growth, TACHO_PART_CPU);
  const double slower_work = work(growth);
  const bool work_is_slower = slower_work >= (kSlower - 1) * work(before.all.parts) &&
                              slower_work >= kSlowerSeconds / 2 && growth.at(held_by) >= kMost * slower_work;
  if (work_is_slower && now.rate() < kMoreRequests * before.rate()) {
    Cause in_work = cause_of_part(held_by, growth.at(held_by), whole, now, before);
    in_work.behind = part;
    return in_work;
  }
  if (lacks_cpu(now, &before)) {
    cause.kind = kind_of_cpu(now);
  } else if (is_more(now, before)) {
    cause.kind = Kind::demand;
  }
  return cause;
}

bool is_known(const Waits& waits) {
  return waits.all.requests >= kFewest && waits.all.requests >= kLeastKnown * waits.requests;
}

bool is_slower(const Waits& now, const std::optional<Waits>& before) {
  return before && is_known(*before) && now.all.seconds >= kSlower * before->all.seconds &&
         now.all.seconds - before->all.seconds >= kSlowerSeconds;
}

/// Nothing if no part makes a quarter of it.
std::optional<Cause> cause_of_growth(const Waits& now, const Waits& before) {
  Parts growth{};
  std::ranges::transform(now.all.parts, before.all.parts, growth.begin(), std::minus<>());
  const double whole = now.all.seconds - before.all.seconds;
  if (growth.at(TACHO_PART_QUEUE) + growth.at(TACHO_PART_HANDOVER) >= kMost * whole) {
    return cause_before_work(growth, whole, now, before);
  }
  const request_part part = largest_part(growth);
  if (growth.at(part) < kShareOfGrowth * whole) {
    return {};
  }
  return cause_of_part(part, growth.at(part), whole, now, before);
}

std::optional<Cause> cause_of_contention(const Waits& now) {
  const Parts& parts = now.all.parts;
  const auto is_most = [&](request_part part, double of) {
    return parts.at(part) >= kMost * of && parts.at(part) >= kContendedSeconds;
  };
  const auto is_a_call = [&](request_part part) {
    return may_be_a_call(part) && std::ranges::any_of(now.calls, [&](const Waits::Calls& calls) {
             return calls.seconds >= kMost * parts.at(part) && calls.seconds <= kSlower * now.all.seconds;
           });
  };
  const auto* const found = std::ranges::find_if(
      kContention, [&](request_part part) { return is_most(part, now.all.seconds) && !is_a_call(part); });
  if (found == kContention.end()) {
    return {};
  }
  Cause cause;
  cause.part = *found;
  cause.seconds = parts.at(*found);
  if (*found == TACHO_PART_LOCK || *found == TACHO_PART_DISK) {
    return cause;
  }
  if (lacks_cpu(now, nullptr)) {
    cause.kind = kind_of_cpu(now);
    return cause;
  }
  const request_part held_by = largest_part(parts, TACHO_PART_CPU);
  if ((held_by == TACHO_PART_LOCK || held_by == TACHO_PART_DISK) && is_most(held_by, work(parts)) &&
      !is_a_call(held_by)) {
    cause.behind = cause.part;
    cause.part = held_by;
    cause.seconds = parts.at(held_by);
  } else if (now.cores > 0 && now.running >= kBusy * now.cores) {
    cause.kind = Kind::demand;
  }
  return cause;
}

}  // namespace

std::span<const metrics::Family> bottleneck_families() {
  return kBottleneckFamilies;
}

std::optional<request_part> bottleneck(const WaitHistory& history) {
  const WaitHistory::Slow slow = history.slow();
  const request_part most = largest_part(slow.mean.parts);
  const bool holds = slow.mean.requests >= static_cast<double>(WaitHistory::kEnoughSlow) &&
                     slow.mean.parts.at(most) >= kMost * slow.mean.seconds;
  return holds ? std::optional(most) : std::nullopt;
}

std::optional<Diagnosis> diagnose(const WaitHistory& history) {
  auto periods = history.periods();
  if (!periods) {
    return {};
  }
  Diagnosis diagnosis;
  diagnosis.periods = std::move(*periods);
  diagnosis.bottleneck = bottleneck(history);
  const Waits& now = diagnosis.periods.now;
  if (now.requests < kFewest) {
    return diagnosis;
  }
  if (!is_known(now)) {
    diagnosis.verdict = Verdict::unseen;
    return diagnosis;
  }
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
