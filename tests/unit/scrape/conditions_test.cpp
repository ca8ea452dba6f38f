#include "scrape/conditions.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <set>
#include <string>

#include "config/labels.h"
#include "probes/registry.h"
#include "scrape/diagnosis.h"
#include "scrape/saturation.h"

using tacho::probes::ConditionCounters;
using namespace tacho::scrape;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

using Names = std::set<std::string>;

/// Names of the conditions that hold.
Names holding(const ConditionWatch& watch, bool few_samples = false) {
  const auto names = tacho::scrape::holding(watch.evaluate(few_samples));
  return {names.begin(), names.end()};
}

/// Names of the conditions that can be seen.
Names seen(const ConditionWatch& watch) {
  const Conditions conditions = watch.evaluate(false);
  Names names;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions.at(i)) {
      names.emplace(condition_table()[i].name);
    }
  }
  return names;
}

/// Counters of both probes.
ConditionCounters counters(const ConditionCounters::Turns& turns, const ConditionCounters::Polls& polls = {}) {
  return {.turns = turns, .polls = polls, .frozen = {}};
}

/// What holds when the counters come to be these within a second, having been 0.
Names after(const ConditionCounters& counters, const Losses& losses = {}) {
  ConditionWatch watch(10s);
  watch.push(0, {}, {});
  watch.push(kSecond, counters, losses);
  return holding(watch);
}

}  // namespace

TEST_CASE("nothing is said of a target that has not been watched for a while") {
  ConditionWatch watch(10s);
  CHECK(holding(watch).empty());
  CHECK(holding(watch, true).empty());
  CHECK(seen(watch).empty());
  CHECK(watch.request_rate() == 0);
  watch.push(0, counters({.requests = 100, .overlapped = 100}), {.lost = 7});
  CHECK(holding(watch).empty());
  CHECK(watch.request_rate() == 0);
}

TEST_CASE("a healthy target has no condition, an idle one neither") {
  CHECK(after(counters({.requests = 1'000}, {.calls = 1'000, .nonblocking = 100})).empty());
  CHECK(after(counters({})).empty());
}

TEST_CASE("requests that overlap make a target multiplexed above a tenth of them") {
  CHECK(after(counters({.requests = 1'000, .overlapped = 100}, {.calls = 1})).empty());
  CHECK(after(counters({.requests = 1'000, .overlapped = 101}, {.calls = 1})) == Names{"multiplexed"});
  CHECK(after(counters({.overlapped = 5})).empty());  // none answered: nothing to judge
}

TEST_CASE("several requests in one read make a target multiplexed above a tenth of those looked at") {
  CHECK(after(counters({.requests = 1'000, .sampled = 100, .repeated = 10}, {.calls = 1})).empty());
  CHECK(after(counters({.requests = 1'000, .sampled = 100, .repeated = 11}, {.calls = 1})) == Names{"multiplexed"});
}

TEST_CASE("messages without a reply are told above a tenth of all messages") {
  CHECK(after(counters({.requests = 90, .one_way = 10}, {.calls = 1})).empty());
  CHECK(after(counters({.requests = 89, .one_way = 11}, {.calls = 1})) == Names{"one_way"});
  CHECK(after(counters({.requests = 0, .one_way = 1}, {.calls = 1})) == Names{"one_way"});
}

TEST_CASE("polls that do not wait make a target busy polling above half of them") {
  CHECK(after(counters({}, {.calls = 10, .nonblocking = 5})).empty());
  CHECK(after(counters({}, {.calls = 10, .nonblocking = 6})) == Names{"busy_polling"});
}

TEST_CASE("requests without polls say that there is no poll to judge by") {
  CHECK(after(counters({.requests = 1})) == Names{"no_poll"});
  CHECK(after(counters({.requests = 1}, {.calls = 1})).empty());
}

TEST_CASE("any lost event is told while it is in the window") {
  CHECK(after(counters({}), {.lost = 1}) == Names{"lost_events"});
  CHECK(after(counters({}), {.lost = 1, .requests = 1'000'000}) == Names{"lost_events"});
  ConditionWatch watch(2s);
  watch.push(0, {}, {});
  watch.push(kSecond, {}, {.lost = 1});
  watch.push(2 * kSecond, {}, {.lost = 1});
  CHECK(holding(watch) == Names{"lost_events"});
  watch.push(3 * kSecond, {}, {.lost = 1});
  CHECK(holding(watch).empty());
}

TEST_CASE("calls that overlap are told above one in ten") {
  CHECK(after(counters({.calls = 100, .calls_overlapped = 10})).empty());
  CHECK(after(counters({.calls = 100, .calls_overlapped = 11})) == Names{"multiplexed_calls"});
  CHECK(after(counters({.calls = 1'000, .calls_sampled = 100, .calls_repeated = 10})).empty());
  CHECK(after(counters({.calls = 1'000, .calls_sampled = 100, .calls_repeated = 11})) == Names{"multiplexed_calls"});
}

TEST_CASE("events that the kernel kept from the programs are told above a thousandth of all requests") {
  CHECK(after({}, {.skipped = 1}) == Names{"lost_events"});
  CHECK(after({}, {.skipped = 1, .requests = 999}) == Names{"lost_events"});
  CHECK(after({}, {.skipped = 1, .requests = 1'000}).empty());
  CHECK(after({}, {.skipped = 11, .requests = 10'000}) == Names{"lost_events"});
}

TEST_CASE("only what happened within the window counts") {
  ConditionWatch watch(10s);
  ConditionCounters::Turns turns;
  ConditionCounters::Polls polls;
  watch.push(0, counters(turns, polls), {});
  turns = {.requests = 1'000, .overlapped = 1'000};  // long ago
  watch.push(kSecond, counters(turns, polls), {});
  CHECK(holding(watch) == Names{"multiplexed", "no_poll"});
  for (int second = 2; second <= 11; ++second) {
    turns.requests += 50;
    polls.calls += 50;
    watch.push(second * kSecond, counters(turns, polls), {});
  }
  CHECK(holding(watch).empty());
  CHECK(watch.request_rate() == Approx(50));
}

TEST_CASE("the rate is that of the window, however the samples are spaced") {
  ConditionWatch watch(10s);
  watch.push(0, counters({.requests = 0}), {});
  watch.push(kSecond / 2, counters({.requests = 100}), {});
  CHECK(watch.request_rate() == Approx(200));
  watch.push(4 * kSecond, counters({.requests = 100}), {});
  CHECK(watch.request_rate() == Approx(25));
  watch.push(60 * kSecond, counters({.requests = 660}), {});  // after a pause of the sampler
  CHECK(watch.request_rate() == Approx(10));
}

TEST_CASE("two samples at the same time give no rate") {
  ConditionWatch watch(10s);
  watch.push(kSecond, counters({.requests = 0}), {});
  watch.push(kSecond, counters({.requests = 9}), {});
  CHECK(watch.request_rate() == 0);
}

TEST_CASE("a condition is told only where its probes see") {
  const auto seen_with = [](const ConditionCounters& counters) {
    ConditionWatch watch(10s);
    watch.push(0, {}, {});
    watch.push(kSecond, counters, {});
    return seen(watch);
  };
  const ConditionCounters::Turns busy{.requests = 1'000};
  CHECK(seen_with(counters(busy)) ==
        Names{"multiplexed", "busy_polling", "few_samples", "no_poll", "lost_events", "one_way", "multiplexed_calls"});
  // The poll probe is off, as in a sidecar: that a server does not poll cannot be known.
  CHECK(seen_with({.turns = busy, .polls = {}, .frozen = {}}) ==
        Names{"multiplexed", "few_samples", "lost_events", "one_way", "multiplexed_calls"});
  CHECK(seen_with({.turns = {}, .polls = ConditionCounters::Polls{.calls = 9}, .frozen = {}}) ==
        Names{"busy_polling", "lost_events"});
  CHECK(seen_with({}) == Names{"lost_events"});
  CHECK(seen_with({.turns = {}, .polls = {}, .frozen = false}) == Names{"lost_events", "frozen"});
}

TEST_CASE("every condition has a name in the family, and the family's label is reserved") {
  const auto families = condition_families();
  REQUIRE(families.size() == 1);
  CHECK(families[0].values.size() == kConditions);
  CHECK_FALSE(tacho::config::check_label_name(families[0].label));
  for (std::size_t i = 0; i < kConditions; ++i) {
    const auto name = condition_name(static_cast<Condition>(i));
    CHECK(name == families[0].values[i]);
    INFO("the help does not explain " << name);
    CHECK(families[0].help.find(std::string(name) + ": ") != std::string_view::npos);
    for (const std::string_view family : entry(static_cast<Condition>(i)).invalidates) {
      CHECK(families[0].help.find(family) != std::string_view::npos);
    }
  }
}

TEST_CASE("every condition names families of targets, sorted, each once") {
  std::set<std::string_view> known;
  for (const auto& probe : tacho::probes::registry()) {
    for (const auto& family : probe.families()) {
      known.insert(family.name);
    }
  }
  for (const auto& families : {saturation_families(), bottleneck_families()}) {
    for (const auto& family : families) {
      known.insert(family.name);
    }
  }
  for (const ConditionEntry& condition : condition_table()) {
    CAPTURE(condition.name);
    CHECK_FALSE(condition.invalidates.empty());
    CHECK(std::ranges::adjacent_find(condition.invalidates, std::greater_equal<>{}) == condition.invalidates.end());
    for (const std::string_view family : condition.invalidates) {
      CAPTURE(family);
      CHECK(known.contains(family));
      CHECK(invalidates(condition.name, family));
    }
    CHECK_FALSE(invalidates(condition.name, "tacho_build_info"));
  }
  CHECK_FALSE(invalidates("nothing", "tacho_requests_total"));
}

TEST_CASE("a frozen cgroup is told as long as it is frozen") {
  ConditionWatch watch(10s);
  watch.push(0, {.turns = {}, .polls = {}, .frozen = true}, {});
  CHECK(holding(watch) == Names{"frozen"});
  watch.push(kSecond, {.turns = {}, .polls = {}, .frozen = false}, {});
  CHECK(holding(watch).empty());
}

TEST_CASE("what says nothing about saturation does not judge it") {
  for (const std::string_view condition : {"busy_polling", "few_samples", "no_poll"}) {
    CHECK_FALSE(invalidates(condition, "tacho_saturation_ratio"));
  }
  for (const std::string_view condition : {"multiplexed", "lost_events", "frozen"}) {
    CHECK(invalidates(condition, "tacho_saturation_ratio"));
  }
}
