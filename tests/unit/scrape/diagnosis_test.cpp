#include "scrape/diagnosis.h"

#include <catch2/catch.hpp>

#include "waits_samples.h"

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
  return tacho::scrape::explain(diagnosis, {{"target", "shop"}}, "db:5432", 0).cause;
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
  CHECK(named(change(before, now)) == "lock");
  const Second more{.requests = 400,
                    .parts_ms = {{TACHO_PART_HANDOVER, 60.0}, {TACHO_PART_LOCK, 0.25}, {TACHO_PART_CPU, 1.0}}};
  CHECK(named(change(before, more)) == "demand");
}

TEST_CASE("a shortage of CPUs is told by threads that wait for one, wherever the requests are") {
  const Second before{.running = 0.3, .runnable = 0.01, .parts_ms = {{TACHO_PART_QUEUE, 0.05}, {TACHO_PART_CPU, 0.2}}};
  Second now{.running = 0.3, .runnable = 0.6, .parts_ms = {{TACHO_PART_QUEUE, 9.0}, {TACHO_PART_CPU, 0.2}}};
  CHECK(named(change(before, now)) == "cpu shortage");
  now.parts_ms = {{TACHO_PART_RUNQUEUE, 4.0}, {TACHO_PART_CPU, 0.2}};
  CHECK(named(change(before, now)) == "cpu shortage");
  now.throttled = 0.4;
  CHECK(named(change(before, now)) == "cpu quota");
  now = {.running = 0.98, .runnable = 0.02, .parts_ms = {{TACHO_PART_QUEUE, 9.0}, {TACHO_PART_CPU, 0.2}}};
  CHECK(named(change(before, now)) == "demand");
}

TEST_CASE("a dependency is named by whom is called") {
  const Second before{.call_ms = 1, .parts_ms = {{TACHO_PART_CPU, 0.2}, {TACHO_PART_EVENT, 1.0}}};
  Second now{.call_ms = 21, .parts_ms = {{TACHO_PART_CPU, 0.2}, {TACHO_PART_EVENT, 21.0}}};
  const Diagnosis diagnosis = change(before, now);
  REQUIRE(diagnosis.cause);
  CHECK(diagnosis.cause->peer == 2);
  CHECK(named(diagnosis) == "dependency db:5432");
  now.call_ms = 1.5;
  CHECK(named(change(before, now)) == "event");
}

TEST_CASE("a client that sends slowly is named") {
  CHECK(named(change({}, {.parts_ms = {{TACHO_PART_RECEIVE, 30.0}, {TACHO_PART_CPU, 1.0}}})) == "receive");
}

TEST_CASE("contention that was always there is named, work is not") {
  const auto always = [](const Second& second) { return named(change(second, second)); };
  CHECK(always({.parts_ms = {{TACHO_PART_LOCK, 6.0}, {TACHO_PART_CPU, 1.0}}}) == "lock");
  CHECK(always({.parts_ms = {{TACHO_PART_DISK, 6.0}, {TACHO_PART_CPU, 1.0}}}) == "disk");
  CHECK(always({.parts_ms = {{TACHO_PART_HANDOVER, 20.0}, {TACHO_PART_LOCK, 3.0}, {TACHO_PART_CPU, 1.0}}}) == "lock");
  CHECK(always({.running = 0.9, .parts_ms = {{TACHO_PART_QUEUE, 6.0}, {TACHO_PART_CPU, 1.0}}}) == "demand");
  CHECK(always({.running = 0.3, .runnable = 0.9, .parts_ms = {{TACHO_PART_QUEUE, 6.0}, {TACHO_PART_CPU, 1.0}}}) ==
        "cpu shortage");
  CHECK(always({.parts_ms = {{TACHO_PART_EVENT, 6.0}, {TACHO_PART_CPU, 1.0}}}).empty());
  CHECK(always({.parts_ms = {{TACHO_PART_SLEEP, 20.0}}}).empty());
  // Waking up takes as long as the work of the fastest servers.
  CHECK(always({.parts_ms = {{TACHO_PART_QUEUE, 0.04}, {TACHO_PART_CPU, 0.02}}}).empty());
}

TEST_CASE("a growth of more than five minutes ago is seen against the hour") {
  Seconds target;
  target.pass(3000, {}).pass(600, {.parts_ms = {{TACHO_PART_DISK, 5.0}}});
  const Diagnosis diagnosis = of(target);
  CHECK(diagnosis.verdict == Verdict::slower);
  CHECK(diagnosis.than_hour);
  CHECK(named(diagnosis) == "disk");
  CHECK_THAT(tacho::scrape::explain(diagnosis, {}, "", 0).sentence, StartsWith("Requests take 5.00 ms, "));
}

TEST_CASE("the bottleneck is the part in which slow requests spend half of their time") {
  const auto bottleneck = [](const Second& second) { return change(second, second).bottleneck; };
  CHECK(bottleneck({.slow = 2, .slow_ms = {{TACHO_PART_LOCK, 6.0}, {TACHO_PART_CPU, 5.0}}}) == TACHO_PART_LOCK);
  CHECK_FALSE(
      bottleneck({.slow = 2, .slow_ms = {{TACHO_PART_LOCK, 5.0}, {TACHO_PART_CPU, 4.0}, {TACHO_PART_QUEUE, 4.0}}}));
  CHECK_FALSE(bottleneck({.slow = 0, .slow_ms = {}}));
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
  const Diagnosis diagnosis = change(
      {},
      {.slow = 3, .parts_ms = {{TACHO_PART_CPU, 1.0}, {TACHO_PART_LOCK, 3.0}}, .slow_ms = {{TACHO_PART_LOCK, 30.0}}});
  const Labels labels{{"target", "a\"b"}, {"namespace", "shop"}};
  const Explanation told = tacho::scrape::explain(diagnosis, labels, "", 0.02);
  CHECK(told.sentence ==
        "Requests take 4.00 ms, 4.0 times as long as in the 60 s before: for 3.00 ms more they wait for a lock. Slow "
        "ones, of more than 20.0 ms, take 30.0 ms: in 100 % of that they wait for a lock.");
  CHECK(told.verdict == "slower");
  CHECK_THAT(told.next, StartsWith("Who holds it"));
  REQUIRE(told.evidence.size() == 2);
  CHECK(told.evidence[0].query.find(R"({target="a\"b",namespace="shop"})") != std::string::npos);
  const Explanation steady = tacho::scrape::explain(change({}, {}), labels, "", 0);
  CHECK(steady.sentence == "Nothing stands out: requests take 1.00 ms, in 100 % of that they are worked on by a CPU.");
  CHECK(steady.next.empty() == !change({}, {}).bottleneck);
}
