#include "scrape/diagnosis.h"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "probes/slow_requests.h"
#include "waits_samples.h"

using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using tacho::scrape::Diagnosis;
using tacho::scrape::Explanation;
using tacho::scrape::Seconds;
using tacho::targets::Labels;
using Second = Seconds::Second;
using Verdict = Diagnosis::Verdict;
using Kind = Diagnosis::Cause::Kind;

namespace {

Diagnosis of(const Seconds& target) {
  auto diagnosis = tacho::scrape::diagnose(target.history);
  REQUIRE(diagnosis);
  return *diagnosis;
}

/// A minute of `before`, and a window of `now`.
Diagnosis change(const Second& before, const Second& now) {
  Seconds target;
  target.pass(60, before).pass(10, now);
  return of(target);
}

std::string named(const Diagnosis& diagnosis) {
  return tacho::scrape::explain(diagnosis, {{"target", "shop"}}, "db:5432").cause;
}

Explanation explain(const Diagnosis& diagnosis) {
  return tacho::scrape::explain(diagnosis, {{"target", "shop"}}, "db:5432");
}

}  // namespace

TEST_CASE("nothing is said of nothing, and little of few requests") {
  Seconds target;
  CHECK_FALSE(tacho::scrape::diagnose(target.history));
  target.pass(20, {.requests = 1, .slow = 0});
  CHECK(of(target).verdict == Verdict::too_few);
  CHECK(named(of(target)).empty());
}

TEST_CASE("requests whose mode is unknown are not judged") {
  Seconds target;
  target.pass(20, {.requests = 10, .unknown = 90});
  CHECK(of(target).verdict == Verdict::unseen);
}

TEST_CASE("what stays as it was is not named") {
  const Second usual{.parts_ms = {{TACHO_PART_CPU, 2.0}, {TACHO_PART_NETWORK, 5.0}, {TACHO_PART_QUEUE, 0.4}}};
  const Diagnosis diagnosis = change(usual, usual);
  CHECK(diagnosis.verdict == Verdict::steady);
  CHECK_FALSE(diagnosis.cause);
}

TEST_CASE("a small growth is not named, nor one of few microseconds") {
  CHECK_FALSE(change({.parts_ms = {{TACHO_PART_CPU, 10.0}}}, {.parts_ms = {{TACHO_PART_CPU, 14.0}}}).cause);
  CHECK_FALSE(change({.parts_ms = {{TACHO_PART_CPU, 0.05}}}, {.parts_ms = {{TACHO_PART_CPU, 0.2}}}).cause);
}

TEST_CASE("the part that has grown is named") {
  for (const auto part : {TACHO_PART_CPU, TACHO_PART_LOCK, TACHO_PART_DISK, TACHO_PART_SLEEP, TACHO_PART_OTHER,
                          TACHO_PART_EVENT, TACHO_PART_NETWORK}) {
    CAPTURE(tacho::probes::kPartNames.at(part));
    const Diagnosis diagnosis = change({}, {.parts_ms = {{TACHO_PART_RUNQUEUE, 0.5}, {part, 6.0}}});
    CHECK(diagnosis.verdict == Verdict::slower);
    REQUIRE(diagnosis.cause);
    CHECK(diagnosis.cause->kind == Kind::part);
    CHECK(named(diagnosis) == tacho::probes::kPartNames.at(part));
  }
}

TEST_CASE("requests that wait for threads wait for what these are at") {
  const Second before{.parts_ms = {{TACHO_PART_HANDOVER, 0.1}, {TACHO_PART_LOCK, 0.2}, {TACHO_PART_CPU, 1.0}}};
  const Second now{.parts_ms = {{TACHO_PART_HANDOVER, 60.0}, {TACHO_PART_LOCK, 5.0}, {TACHO_PART_CPU, 1.0}}};
  const Diagnosis diagnosis = change(before, now);
  CHECK(named(diagnosis) == "lock");
  CHECK(diagnosis.cause->behind == TACHO_PART_HANDOVER);
  CHECK_THAT(explain(diagnosis).sentence,
             EndsWith("they wait inside the server until a thread begins with them, and threads wait for a lock or for "
                      "another thread."));
}

TEST_CASE("demand takes more requests, or CPUs that are busy") {
  const Second before{.parts_ms = {{TACHO_PART_QUEUE, 0.1}, {TACHO_PART_CPU, 1.0}}};
  const Seconds::Parts parts{{TACHO_PART_QUEUE, 9.0}, {TACHO_PART_CPU, 1.0}};
  CHECK(named(change(before, {.requests = 130, .parts_ms = parts})) == "demand");
  CHECK(named(change(before, {.running = 3.5, .parts_ms = parts})) == "demand");
  CHECK(named(change(before, {.parts_ms = parts})) == "queue");
  // At night: a server that waits until it has a batch.
  CHECK(named(change(
            {.parts_ms = {{TACHO_PART_HANDOVER, 2.0}, {TACHO_PART_CPU, 1.0}}},
            {.requests = 20, .running = 0.04, .parts_ms = {{TACHO_PART_HANDOVER, 9.0}, {TACHO_PART_CPU, 1.0}}})) ==
        "handover");
  // Overload makes the work a little slower, too.
  CHECK(
      named(change({.parts_ms = {{TACHO_PART_QUEUE, 0.05}, {TACHO_PART_CPU, 1.0}}},
                   {.requests = 640, .running = 1, .parts_ms = {{TACHO_PART_QUEUE, 30.0}, {TACHO_PART_CPU, 1.55}}})) ==
      "demand");
}

TEST_CASE("what has not grown is not named, whatever the rest") {
  const Diagnosis spread =
      change({.parts_ms = {{TACHO_PART_QUEUE, 0.2}, {TACHO_PART_RECEIVE, 0.5}, {TACHO_PART_CPU, 0.3}}},
             {.parts_ms = {{TACHO_PART_QUEUE, 0.1},
                           {TACHO_PART_RECEIVE, 0.64},
                           {TACHO_PART_CPU, 0.44},
                           {TACHO_PART_LOCK, 0.14},
                           {TACHO_PART_EVENT, 0.14},
                           {TACHO_PART_DISK, 0.14}}});
  CHECK(spread.verdict == Verdict::slower);
  CHECK_FALSE(spread.cause);
  CHECK_THAT(explain(spread).sentence, EndsWith("before: no part of them stands out."));
  CHECK(named(change({.parts_ms = {{TACHO_PART_QUEUE, 0.2}, {TACHO_PART_RECEIVE, 0.1}, {TACHO_PART_CPU, 1.0}}},
                     {.parts_ms = {{TACHO_PART_QUEUE, 0.1}, {TACHO_PART_RECEIVE, 0.8}, {TACHO_PART_CPU, 1.3}}})) ==
        "receive");
}

TEST_CASE("causes of random growths are of parts that have grown") {
  std::minstd_rand random(24);  // NOLINT(cert-msc51-cpp): the same every time
  const auto draw = [&random] { return std::ldexp(1.0, static_cast<int>(random() % 16) - 8); };
  for (int i = 0; i < 2000; ++i) {
    Second before;
    Second now;
    for (std::size_t part = 0; part < TACHO_PARTS; ++part) {
      before.parts_ms.ms.at(part) = draw();
      now.parts_ms.ms.at(part) = draw();
    }
    now.requests = 20 + random() % 300;
    now.runnable = draw();
    now.throttled = random() % 3 == 0 ? 0.2 : 0;
    before.call_ms = draw();
    now.call_ms = draw();
    const Diagnosis diagnosis = change(before, now);
    if (diagnosis.cause) {
      CAPTURE(i, named(diagnosis));
      CHECK(diagnosis.cause->seconds > 0);
      CHECK(diagnosis.cause->seconds <= 1.001 * diagnosis.periods.now.all.seconds);
      if (diagnosis.verdict == Verdict::slower) {
        const auto part = diagnosis.cause->part;
        CHECK(now.parts_ms.ms.at(part) > before.parts_ms.ms.at(part));
      }
    }
    CHECK(explain(diagnosis).sentence.find("nan") == std::string::npos);
    CHECK(explain(diagnosis).sentence.find("–") == std::string::npos);
  }
}

TEST_CASE("a shortage of CPUs is told by threads that wait for one, wherever the requests are") {
  const Second before{.running = 0.3, .runnable = 0.01, .parts_ms = {{TACHO_PART_QUEUE, 0.05}, {TACHO_PART_CPU, 0.2}}};
  Second now{.running = 0.3, .runnable = 0.6, .parts_ms = {{TACHO_PART_QUEUE, 9.0}, {TACHO_PART_CPU, 0.2}}};
  CHECK(named(change(before, now)) == "cpu shortage");
  now.parts_ms = {{TACHO_PART_RUNQUEUE, 4.0}, {TACHO_PART_CPU, 0.2}};
  CHECK(named(change(before, now)) == "cpu shortage");
  now.throttled = 0.4;
  CHECK(named(change(before, now)) == "cpu quota");
  // Threads waited as much before.
  Second short_before = before;
  short_before.runnable = 0.5;
  now.throttled = 0;
  CHECK(named(change(short_before, now)) == "runqueue");
  // A large share that became a larger one: they wait three times as long for each second that they run.
  now.runnable = 1.5;
  CHECK(named(change(short_before, now)) == "cpu shortage");
  // They hardly wait at all.
  now.runnable = 0.02;
  CHECK(named(change(before, now)) == "runqueue");
}

TEST_CASE("a quota that was at work before is still the reason") {
  const Second before{.running = 0.5,
                      .runnable = 0.6,
                      .throttled = 0.5,
                      .parts_ms = {{TACHO_PART_RUNQUEUE, 1.0}, {TACHO_PART_CPU, 1.0}}};
  const Second now{
      .running = 0.5, .runnable = 4, .throttled = 3.6, .parts_ms = {{TACHO_PART_RUNQUEUE, 4.0}, {TACHO_PART_CPU, 1.0}}};
  const Diagnosis diagnosis = change(before, now);
  CHECK(named(diagnosis) == "cpu quota");
  CHECK_THAT(
      explain(diagnosis).sentence,
      EndsWith(
          "the quota of CPU time is used up, its threads wait for one in 89 % of the time in which they could run."));
}

TEST_CASE("a dependency is named by whom is called, wherever the thread waits") {
  for (const auto part : {TACHO_PART_EVENT, TACHO_PART_NETWORK, TACHO_PART_LOCK, TACHO_PART_HANDOVER}) {
    CAPTURE(tacho::probes::kPartNames.at(part));
    const Second before{.call_ms = 1, .parts_ms = {{TACHO_PART_CPU, 0.2}, {part, 1.1}}};
    Second now{.call_ms = 21, .parts_ms = {{TACHO_PART_CPU, 0.2}, {part, 21.1}}};
    const Diagnosis diagnosis = change(before, now);
    REQUIRE(diagnosis.cause);
    CHECK(diagnosis.cause->peer == 2);
    CHECK(named(diagnosis) == "dependency db:5432");
    now.call_ms = 1.5;
    CHECK(named(change(before, now)) == tacho::probes::kPartNames.at(part));
  }
}

TEST_CASE("calls that are none of the requests' are not their cause") {
  const Second before{.call_ms = 10, .parts_ms = {{TACHO_PART_CPU, 0.2}, {TACHO_PART_EVENT, 0.8}}};
  // One thread always waits for a queue; at night there are more of its calls a request.
  const Second fewer{
      .requests = 20, .call_ms = 10, .calls = 5, .parts_ms = {{TACHO_PART_CPU, 0.2}, {TACHO_PART_EVENT, 6.0}}};
  CHECK(named(change(before, fewer)) == "event");
  const Second much{.call_ms = 500, .parts_ms = {{TACHO_PART_CPU, 0.2}, {TACHO_PART_EVENT, 2.0}}};
  CHECK(named(change(before, much)) == "event");
  // More calls by the threads that answer are.
  const Second more{
      .call_ms = 1, .calls = 20, .in_line_ms = 20, .parts_ms = {{TACHO_PART_CPU, 0.2}, {TACHO_PART_NETWORK, 20.0}}};
  CHECK(named(change({.call_ms = 1, .in_line_ms = 1, .parts_ms = {{TACHO_PART_CPU, 0.2}, {TACHO_PART_NETWORK, 1.0}}},
                     more)) == "dependency db:5432");
}

TEST_CASE("a dependency has no more of the time than its calls") {
  const Diagnosis diagnosis = change({.call_ms = 1, .parts_ms = {{TACHO_PART_CPU, 0.2}, {TACHO_PART_EVENT, 2.0}}},
                                     {.call_ms = 12, .parts_ms = {{TACHO_PART_CPU, 0.2}, {TACHO_PART_EVENT, 22.0}}});
  CHECK_THAT(explain(diagnosis).sentence, EndsWith("for 11.0 ms more they wait for answers from db:5432."));
  Diagnosis others = diagnosis;
  others.cause->peer = 0;
  CHECK_THAT(explain(others).sentence, EndsWith("answers from peers beyond limits.max_peers."));
}

TEST_CASE("a client that sends slowly is named") {
  CHECK(named(change({}, {.parts_ms = {{TACHO_PART_RECEIVE, 30.0}, {TACHO_PART_CPU, 1.0}}})) == "receive");
}

TEST_CASE("contention that was always there is named, work is not") {
  const auto always = [](const Second& second) { return named(change(second, second)); };
  CHECK(always({.parts_ms = {{TACHO_PART_LOCK, 6.0}, {TACHO_PART_CPU, 1.0}}}) == "lock");
  CHECK(always({.parts_ms = {{TACHO_PART_LOCK, 0.4}, {TACHO_PART_CPU, 0.1}}}).empty());
  CHECK(always({.parts_ms = {{TACHO_PART_DISK, 6.0}, {TACHO_PART_CPU, 1.0}}}) == "disk");
  CHECK(always({.parts_ms = {{TACHO_PART_HANDOVER, 20.0}, {TACHO_PART_LOCK, 3.0}, {TACHO_PART_CPU, 1.0}}}) == "lock");
  CHECK(always({.running = 3.9, .parts_ms = {{TACHO_PART_QUEUE, 6.0}, {TACHO_PART_CPU, 1.0}}}) == "demand");
  CHECK(always({.running = 0.1, .parts_ms = {{TACHO_PART_HANDOVER, 6.0}, {TACHO_PART_CPU, 1.0}}}) == "handover");
  CHECK(always({.running = 0.3, .runnable = 0.9, .parts_ms = {{TACHO_PART_QUEUE, 6.0}, {TACHO_PART_CPU, 1.0}}}) ==
        "cpu shortage");
  CHECK(always({.parts_ms = {{TACHO_PART_EVENT, 6.0}, {TACHO_PART_CPU, 1.0}}}).empty());
  CHECK(always({.parts_ms = {{TACHO_PART_SLEEP, 20.0}}}).empty());
  // A thread that waits for another one, which has called somebody.
  CHECK(always({.call_ms = 5, .parts_ms = {{TACHO_PART_LOCK, 5.1}, {TACHO_PART_CPU, 0.4}}}).empty());
  // Waking up takes as long as the work of the fastest servers.
  CHECK(always({.parts_ms = {{TACHO_PART_QUEUE, 0.04}, {TACHO_PART_CPU, 0.02}}}).empty());
}

TEST_CASE("a past of few requests, or of unknown ones, is no measure") {
  const Second slow{.parts_ms = {{TACHO_PART_DISK, 50.0}}};
  CHECK(change({.requests = 0, .unknown = 90}, slow).verdict == Verdict::contended);
  Seconds few;
  few.pass(1, {.requests = 20}).pass(59, {.requests = 0}).pass(10, slow);
  CHECK(of(few).verdict == Verdict::contended);
}

TEST_CASE("a growth of more than five minutes ago is seen against the hour") {
  Seconds target;
  target.pass(3000, {}).pass(600, {.parts_ms = {{TACHO_PART_DISK, 5.0}}});
  const Diagnosis diagnosis = of(target);
  CHECK(diagnosis.verdict == Verdict::slower);
  CHECK(diagnosis.than_hour);
  CHECK(named(diagnosis) == "disk");
  CHECK_THAT(explain(diagnosis).sentence, StartsWith("Requests take 5.00 ms, "));
}

TEST_CASE("the bottleneck is the part in which slow requests spend half of their time") {
  const auto bottleneck = [](const Second& second) { return change(second, second).bottleneck; };
  CHECK(bottleneck({.slow = 2, .slow_ms = {{TACHO_PART_LOCK, 6.0}, {TACHO_PART_CPU, 5.0}}}) == TACHO_PART_LOCK);
  CHECK_FALSE(
      bottleneck({.slow = 2, .slow_ms = {{TACHO_PART_LOCK, 5.0}, {TACHO_PART_CPU, 4.0}, {TACHO_PART_QUEUE, 4.0}}}));
  CHECK_FALSE(bottleneck({.slow = 0, .slow_ms = {}}));
  Seconds nine;
  nine.pass(20, {}).pass(9, {.slow = 1, .slow_ms = {{TACHO_PART_LOCK, 6.0}}});
  CHECK_FALSE(of(nine).bottleneck);
  nine.pass(1, {.slow = 1, .slow_ms = {{TACHO_PART_LOCK, 6.0}}});
  CHECK(of(nine).bottleneck == TACHO_PART_LOCK);
  // Whatever is to be said of all requests.
  Seconds unknown;
  unknown.pass(20, {.requests = 10, .slow = 2, .unknown = 90, .slow_ms = {{TACHO_PART_DISK, 6.0}}});
  CHECK(of(unknown).verdict == Verdict::unseen);
  CHECK(of(unknown).bottleneck == TACHO_PART_DISK);
}

TEST_CASE("a bottleneck appears with its first time, and stays as 0") {
  using tacho::metrics::Value;
  const auto row = tacho::scrape::bottleneck_row(TACHO_PART_DISK, (1U << TACHO_PART_DISK) | (1U << TACHO_PART_LOCK));
  REQUIRE(row.values.size() == TACHO_PARTS);
  CHECK(row.values[TACHO_PART_DISK].integer == 1);
  CHECK(row.values[TACHO_PART_LOCK].integer == 0);
  CHECK(row.values[TACHO_PART_LOCK].kind == Value::Kind::count);
  CHECK(row.values[TACHO_PART_CPU].kind == Value::Kind::absent);
}

TEST_CASE("an explanation says how long, how much more, and what of") {
  const Diagnosis diagnosis = change({.threshold_ms = 20}, {.slow = 3,
                                                            .threshold_ms = 20,
                                                            .parts_ms = {{TACHO_PART_CPU, 1.0}, {TACHO_PART_LOCK, 3.0}},
                                                            .slow_ms = {{TACHO_PART_LOCK, 30.0}}});
  const Labels labels{{"target", "a\"b\xEF\xBF\xBD"}, {"namespace", "shop"}};
  const std::array<std::string_view, 1> doubts{"multiplexed"};
  const Explanation told = tacho::scrape::explain(diagnosis, labels, "", doubts);
  CHECK(told.sentence ==
        "Requests take 4.00 ms, 4.0 times as long as in the 60 s before: for 3.00 ms more they wait for a lock or for "
        "another thread. Slow ones, of more than 20.0 ms, take 30.0 ms: in 100 % of that they wait for a lock or for "
        "another thread. Doubtful: multiplexed.");
  CHECK(told.verdict == "slower");
  CHECK(told.doubts == std::vector<std::string_view>{"multiplexed"});
  CHECK_THAT(told.next, StartsWith("Who holds it"));
  REQUIRE(told.evidence.size() == 2);
  CHECK(told.evidence[0].query.find(R"({target="a\"b\xef\xbf\xbd",namespace="shop",pod="",container=""})") !=
        std::string::npos);
  const Diagnosis steady = change({.slow = 0}, {.slow = 0});
  CHECK(explain(steady).sentence ==
        "Nothing stands out: requests take 1.00 ms, in 100 % of that they have their thread on a CPU.");
  CHECK(explain(steady).next.empty());
}
