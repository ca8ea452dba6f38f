#include "probes/poll_decode.h"

#include <algorithm>

#include "metrics/buckets.h"
#include "metrics/entry.h"
#include "probes/bracket.h"
#include "probes/histogram_decode.h"

namespace tacho::probes {
namespace {

using metrics::Family;
using metrics::Sink;
using metrics::Type;
using metrics::Value;

constexpr std::array<std::string_view, TACHO_POLL_OUTCOMES> kOutcomes{"ready", "timeout", "nonblocking", "error",
                                                                      "blocked"};

struct PollSource {
  const PollSnapshot& snapshot;
  std::uint64_t idle_ns;
  const metrics::Gauges& gauges;
};
using PollEntry = metrics::Entry<PollSource>;

// Waits that are found under way would not end without the hook of polls, those of threads that end not without theirs.
constexpr std::array<std::string_view, 1> kPolls{"poll"};
constexpr std::array<std::string_view, 2> kPollsAndEnds{"poll", "thread_exit"};

constexpr std::array kEntries{
    PollEntry{
        Family{"tacho_polls_total", Type::counter, "",
               "Completed epoll_wait, poll and select calls. ready: at least one descriptor was; timeout: none was in "
               "time; nonblocking: called with a timeout of zero; error: interrupted or failed; "
               "blocked: where the scheduler observes polls, all that slept, whatever they returned.",
               "outcome", kOutcomes}
            .seen_by(kPolls)
            .on_first_event(),
        [](const PollSource& s, Sink& out) {
          out.each(s.snapshot.completed, [](std::uint64_t each) { return Value::count(each); });
        }},
    PollEntry{Family{"tacho_poll_duration_seconds",
                     Type::histogram,
                     "seconds",
                     "Duration of completed epoll_wait, poll and select calls, of all outcomes.",
                     "",
                     {}}
                  .seen_by(kPolls)
                  .with(metrics::Detail::mean)
                  .on_first_event(),
              [](const PollSource& s, Sink& out) { out.add(s.snapshot.duration); }},
    PollEntry{
        Family{
            "tacho_poll_duration_mean_seconds",
            Type::gauge,
            "seconds",
            "Mean duration of polling calls over {window}, waits in progress included (ISPASS 2024: saturation slack). "
            "Where the scheduler observes polls: the time in them over the calls that slept or the requests, whichever "
            "are more.",
            "",
            {}}
            .seen_by(kPolls)
            .on_first_event(),
        [](const PollSource& s, Sink& out) { out.add(Value::number(s.gauges.poll_mean)); }},
    PollEntry{Family{"tacho_poll_waiters", Type::gauge, "", "Threads that are waiting in a polling call now.", "", {}}
                  .seen_by(kPollsAndEnds)
                  .on_first_event(),
              [](const PollSource& s, Sink& out) { out.add(Value::count(s.snapshot.times.waiting())); }},
    PollEntry{
        Family{"tacho_idle_seconds_total",
               Type::counter,
               "seconds",
               "Thread time spent waiting in polling calls, waits in progress included.",
               "",
               {}}
            .seen_by(kPolls)
            .on_first_event(),
        [](const PollSource& s, Sink& out) { out.add(Value::nanoseconds(static_cast<std::int64_t>(s.idle_ns))); }},
    PollEntry{Family{"tacho_threads",
                     Type::gauge,
                     "",
                     "Threads that have called epoll_wait, poll or select and are alive; where the scheduler observes "
                     "polls, those that have slept in one.",
                     "",
                     {}}
                  .seen_by(kPollsAndEnds)
                  .on_first_event(),
              [](const PollSource& s, Sink& out) { out.add(Value::count(not_negative(s.snapshot.threads))); }},
};

constexpr auto kFamilies = metrics::families_of(kEntries);

}  // namespace

std::uint64_t PollTimes::total_ns(std::int64_t now_ns) const {
  return not_negative(completed_ns + waiters * static_cast<std::uint64_t>(now_ns) - started_ns);
}

std::uint64_t PollTimes::waiting() const {
  return not_negative(waiters);
}

std::span<const Family> poll_families() {
  return kFamilies;
}

void add_shard(PollTimes& times, const poll_shard& shard) {
  const PollTimes copy = read_bracketed(
      shard.begin, shard.end,
      [&shard] {
        PollTimes inside;
        inside.completed_ns = load(shard.duration.sum_ns);
        inside.waiters = load(shard.waiters);
        inside.started_ns = load(shard.started_ns);
        return inside;
      },
      &times.in_step);
  times.completed_ns += copy.completed_ns;
  times.waiters += copy.waiters;
  times.started_ns += copy.started_ns;
}

void add_shard(PollSnapshot& snapshot, const poll_shard& shard) {
  add_histogram(snapshot.duration, shard.duration);
  for (std::size_t i = 0; i < snapshot.completed.size(); ++i) {
    snapshot.completed[i] += load(shard.completed[i]);
  }
  add_shard(snapshot.times, shard);
  snapshot.threads += load(shard.threads);
  snapshot.own_ns += load(shard.own_ns);
}

PollSample sample_of(const PollSnapshot& s, std::uint64_t idle_ns) {
  PollSample sample;
  sample.counters.completed = metrics::total(s.duration);
  sample.counters.nonblocking = s.completed[TACHO_POLL_NONBLOCKING];
  sample.counters.started = sample.counters.completed + s.times.waiters;
  sample.counters.ns = idle_ns;
  sample.waiters = s.times.waiting();
  sample.threads = not_negative(s.threads);
  sample.own_ns = s.own_ns;
  return sample;
}

void decode(const PollSnapshot& s, std::uint64_t idle_ns, const metrics::Gauges& gauges, metrics::Row& row) {
  metrics::append_all(kEntries, {.snapshot = s, .idle_ns = idle_ns, .gauges = gauges}, row);
}

}  // namespace tacho::probes
