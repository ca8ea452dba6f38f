// What a diagnosis is in words, with the queries that show it and what to look at next.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/quantities.h"
#include "metrics/escape.h"
#include "probes/slow_requests.h"
#include "scrape/diagnosis.h"

namespace tacho::scrape {
namespace {

using Kind = Diagnosis::Cause::Kind;
using Verdict = Diagnosis::Verdict;

struct PartWords {
  std::string_view waits;  ///< after "requests"
  std::string_view held;   ///< after "threads": what keeps them; empty: they are not at work there
  std::string_view next;
};

/// By enum request_part.
constexpr std::array<PartWords, TACHO_PARTS> kWords{{
    {"wait in the socket until a thread reads them", "",
     "tacho_saturation_ratio: how near the target is to what it can serve."},
    {"come in pieces: the rest of them is on its way", "",
     "The client and the network: they decide when the rest comes."},
    {"wait inside the server until a thread begins with them", "",
     "The size of its pool of threads, and what these are held by: the parts after hand-over."},
    {"have their thread on a CPU", "compute", "A profile of the program (perf, or its language's own)."},
    {"wait for a CPU", "wait for a CPU",
     "Who else runs on these CPUs (top, systemd-cgtop), and the weight of the target's cgroup."},
    {"wait for a lock or for another thread", "wait for a lock or for another thread",
     "Who holds it: stacks of the threads that sleep in futex (perf, gdb, jstack, py-spy)."},
    {"wait for a disk", "wait for a disk",
     "The disk's own queue, and who else writes to it (iostat -x, pidstat -d, io.stat of cgroups)."},
    {"wait in calls on sockets", "wait in calls on sockets",
     "Whom it calls: tacho_dependency_duration_seconds by peer."},
    {"wait for an event in epoll, poll or the like", "wait for an event in epoll, poll or the like",
     "What wakes it: a dependency (tacho_dependency_duration_seconds by peer), a timer, or another process, as a "
     "database's row locks do."},
    {"sleep", "sleep", "A pause in the program itself: a retry, a limit of rates, a loop that polls."},
    {"wait for something else", "wait for something else",
     "tacho_offcpu_seconds_total by syscall: page faults, file locks, child processes."},
}};

constexpr std::array<std::string_view, 5> kVerdicts{"too_few", "unseen", "steady", "contended", "slower"};

/// As PromQL spells a string. U+FFFD, which it takes for a byte that is not UTF-8, by its bytes.
std::string promql_string(std::string_view value) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string text;
  metrics::append_label_value(text, value);
  for (std::size_t at = text.find(kReplacement); at != std::string::npos; at = text.find(kReplacement, at)) {
    text.replace(at, kReplacement.size(), R"(\xef\xbf\xbd)");
  }
  return '"' + text + '"';
}

/// Labels that the target has not are said to be empty: others of its name may have them.
std::string selector(const targets::Labels& labels, std::string_view more = "") {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, promql_string(value));
  }
  for (const std::string_view name : {"namespace", "pod", "container"}) {
    if (std::ranges::find(labels, name, &targets::Labels::value_type::first) == labels.end()) {
      text += fmt::format("{}{}=\"\"", text.empty() ? "" : ",", name);
    }
  }
  return fmt::format("{{{}{}}}", text, more);
}

std::string share_of(const MeanParts& mean, request_part part) {
  return format_share(mean.parts.at(part) / mean.seconds);
}

std::string_view name(request_part part) {
  return probes::kPartNames.at(part);
}

/// "the five minutes before", "the 42 s before".
std::string when(const Diagnosis& diagnosis) {
  constexpr double kMinute = 60;
  const double seconds = diagnosis.compared()->seconds;
  if (diagnosis.than_hour && seconds >= 58 * kMinute && seconds <= 66 * kMinute) {
    return "the hour before";
  }
  if (seconds >= 290 && seconds <= 370) {
    return "the five minutes before";
  }
  return seconds >= 3 * kMinute ? fmt::format("the {:.0f} minutes before", seconds / kMinute)
                                : fmt::format("the {:.0f} s before", seconds);
}

/// What waits for a CPU, of the time in which threads could run.
std::string lacks_cpu(const Waits& now) {
  return fmt::format("its threads wait for one in {} of the time in which they could run",
                     format_share(now.runnable / (now.running + now.runnable)));
}

std::string who(const Diagnosis::Cause& cause, std::string_view peer) {
  return cause.peer == 0 ? "peers beyond limits.max_peers" : std::string(peer);
}

/// Ends the sentence that says how long requests take.
std::string clause(const Diagnosis& diagnosis, std::string_view peer) {
  const Diagnosis::Cause& cause = *diagnosis.cause;
  const Waits& now = diagnosis.periods.now;
  const std::string length = fmt::format("for {} {} they", format_time(cause.seconds),
                                         diagnosis.verdict == Verdict::slower ? "more" : "of that");
  std::string behind;
  if (cause.behind) {
    behind = fmt::format("they {}, and threads ", kWords.at(*cause.behind).waits);
  }
  switch (cause.kind) {
    case Kind::dependency:
      return cause.behind ? fmt::format("{}wait for answers from {}", behind, who(cause, peer))
                          : fmt::format("{} wait for answers from {}", length, who(cause, peer));
    case Kind::quota:
      return fmt::format("the quota of CPU time is used up, {}", lacks_cpu(now));
    case Kind::cpu:
      return fmt::format("CPUs are short, {}", lacks_cpu(now));
    case Kind::demand:
      return fmt::format("{} {}, as more come than its threads work off", length, kWords.at(cause.part).waits);
    case Kind::part:
      return cause.behind ? fmt::format("{}{}", behind, kWords.at(cause.part).held)
                          : fmt::format("{} {}", length, kWords.at(cause.part).waits);
  }
  std::unreachable();
}

std::string slow_sentence(const Diagnosis& diagnosis) {
  const WaitHistory::Slow& slow = diagnosis.periods.slow;
  if (!diagnosis.bottleneck) {
    return "";
  }
  return fmt::format(" Slow ones{} take {}: in {} of that they {}.",
                     slow.threshold > 0 ? fmt::format(", of more than {},", format_time(slow.threshold)) : "",
                     format_time(slow.mean.seconds), share_of(slow.mean, *diagnosis.bottleneck),
                     kWords.at(*diagnosis.bottleneck).waits);
}

std::string sentence(const Diagnosis& diagnosis, std::string_view peer) {
  const Waits& now = diagnosis.periods.now;
  const std::string takes = fmt::format("equests take {}", format_time(now.all.seconds));
  switch (diagnosis.verdict) {
    case Verdict::too_few:
      return fmt::format("{:.0f} requests in the last {:.0f} s are too few to say what they wait for.", now.requests,
                         now.seconds);
    case Verdict::unseen:
      return fmt::format(
          "It is not known what requests wait for: {} of them have the mode unknown (HTTP/2, datagrams, "
          "io_uring).",
          format_share(1 - now.all.requests / now.requests));
    case Verdict::steady:
      return fmt::format("Nothing stands out: r{}, in {} of that they {}.{}", takes,
                         share_of(now.all, largest_part(now.all.parts)), kWords.at(largest_part(now.all.parts)).waits,
                         slow_sentence(diagnosis));
    case Verdict::contended:
      return fmt::format("R{}: {}.{}", takes, clause(diagnosis, peer), slow_sentence(diagnosis));
    case Verdict::slower: {
      const std::string longer = fmt::format("{:.1f} times as long as in {}",
                                             now.all.seconds / diagnosis.compared()->all.seconds, when(diagnosis));
      return fmt::format("R{}, {}: {}.{}", takes, longer,
                         diagnosis.cause ? clause(diagnosis, peer) : "no part of them stands out",
                         slow_sentence(diagnosis));
    }
  }
  std::unreachable();
}

std::string cause_name(const Diagnosis::Cause& cause, std::string_view peer) {
  switch (cause.kind) {
    case Kind::part:
      return std::string(name(cause.part));
    case Kind::dependency:
      return fmt::format("dependency {}", who(cause, peer));
    case Kind::cpu:
      return "cpu shortage";
    case Kind::quota:
      return "cpu quota";
    case Kind::demand:
      return "demand";
  }
  std::unreachable();
}

std::string_view next(const Diagnosis::Cause& cause) {
  switch (cause.kind) {
    case Kind::dependency:
      return "That peer: watched by tacho where it runs, or by what it says itself.";
    case Kind::quota:
      return "The quota (cpu.max, limits.cpu), or fewer threads: tacho_cpu_limit_cores says what it is, "
             "tacho_cpu_throttled_seconds_total what it took.";
    case Kind::cpu:
      return kWords.at(TACHO_PART_RUNQUEUE).next;
    case Kind::demand:
    case Kind::part:
      return kWords.at(cause.part).next;
  }
  std::unreachable();
}

std::vector<Explanation::Evidence> evidence(const Diagnosis& diagnosis, const targets::Labels& labels,
                                            std::string_view peer) {
  const std::string own = selector(labels);
  const std::string known = selector(labels, R"(,mode!="unknown")");
  std::vector<Explanation::Evidence> list{
      {"the mean by part", fmt::format("rate(tacho_request_time_seconds_total{}[5m]) / ignoring(part) group_left() sum "
                                       "without (mode) (rate(tacho_request_serving_total{}[5m]))",
                                       own, known)},
      {"that of slow requests", fmt::format("rate(tacho_slow_request_time_seconds_total{}[5m]) / ignoring(part) "
                                            "group_left() (rate(tacho_slow_requests_total{}[5m]) > 0)",
                                            own, own)}};
  if (!diagnosis.cause) {
    return list;
  }
  switch (diagnosis.cause->kind) {
    case Kind::dependency: {
      const std::string calls = selector(labels, fmt::format(",peer={}", promql_string(peer)));
      list.push_back(
          {"the mean of its calls", fmt::format("rate(tacho_dependency_duration_seconds_sum{0}[5m]) / "
                                                "rate(tacho_dependency_duration_seconds_count{0}[5m]) or "
                                                "histogram_sum(rate(tacho_dependency_duration_seconds{0}[5m])) / "
                                                "histogram_count(rate(tacho_dependency_duration_seconds{0}[5m]))",
                                                calls)});
      break;
    }
    case Kind::quota:
      list.push_back({"the time throttled", fmt::format("rate(tacho_cpu_throttled_seconds_total{}[5m])", own)});
      break;
    case Kind::cpu:
      list.push_back({"threads that wait for a CPU", fmt::format("rate(tacho_thread_state_seconds_total{}[5m])",
                                                                 selector(labels, ",state=\"runnable\""))});
      break;
    case Kind::demand:
      list.push_back({"how near it is to saturation", fmt::format("tacho_saturation_ratio{}", own)});
      break;
    case Kind::part:
      break;
  }
  return list;
}

}  // namespace

Explanation explain(const Diagnosis& diagnosis, const targets::Labels& labels, std::string_view peer,
                    std::span<const std::string_view> doubts) {
  Explanation result;
  result.verdict = kVerdicts.at(static_cast<std::size_t>(diagnosis.verdict));
  result.cause = diagnosis.cause ? cause_name(*diagnosis.cause, peer) : "";
  result.sentence = sentence(diagnosis, peer);
  if (diagnosis.verdict >= Verdict::steady) {
    result.evidence = evidence(diagnosis, labels, peer);
    result.doubts.assign(doubts.begin(), doubts.end());
    if (!doubts.empty()) {
      result.sentence += fmt::format(" Doubtful: {}.", fmt::join(doubts, ", "));
    }
  }
  if (diagnosis.cause) {
    result.next = next(*diagnosis.cause);
  } else if (diagnosis.bottleneck) {
    result.next = kWords.at(*diagnosis.bottleneck).next;
  }
  return result;
}

}  // namespace tacho::scrape
