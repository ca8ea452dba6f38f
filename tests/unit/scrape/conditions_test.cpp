#include "scrape/conditions.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "config/labels.h"
#include "probes/registry.h"
#include "scrape/families.h"

using tacho::metrics::Losses;
using tacho::metrics::PollCounters;
using tacho::metrics::SocketCounters;
using tacho::metrics::TurnCounters;
using tacho::metrics::Window;
using tacho::metrics::WindowSample;
using namespace tacho::scrape;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

using Names = std::set<std::string>;

Conditions judge(const Window& window, bool few_samples = false, std::optional<ShedLevel> shed = {}) {
  return conditions(window.samples().front(), window.samples().back(), few_samples, shed);
}

/// Names of the conditions that hold.
Names holding(const Window& window) {
  const auto names = tacho::scrape::holding(judge(window));
  return {names.begin(), names.end()};
}

/// Names of the conditions that can be seen.
Names seen(const Window& window) {
  const Conditions conditions = judge(window);
  Names names;
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    if (conditions.at(i)) {
      names.emplace(condition_table()[i].name);
    }
  }
  return names;
}

/// What the probes see at a time; of one that is off nothing is given.
WindowSample sample(std::int64_t time_ns, std::optional<TurnCounters> turns = {},
                    std::optional<PollCounters> polls = {}, const Losses& losses = {}) {
  WindowSample sample;
  sample.time_ns = time_ns;
  if (turns) {
    sample.socket.emplace().turns = turns;
    sample.socket->queue_ns = 0;
  }
  sample.poll = polls;
  sample.losses = losses;
  return sample;
}

WindowSample frozen(std::int64_t time_ns, bool on) {
  WindowSample sample;
  sample.time_ns = time_ns;
  sample.threads.emplace().frozen = on;
  return sample;
}

Window between(const WindowSample& older, const WindowSample& newer) {
  Window window(10s);
  window.push(older);
  window.push(newer);
  return window;
}

/// What holds when the counters come to be these within a second, having been 0.
Names after(const TurnCounters& turns, const PollCounters& polls = {}, const Losses& losses = {}) {
  return holding(between(sample(0), sample(kSecond, turns, polls, losses)));
}

Names after_losses(const Losses& losses) {
  return after({}, {}, losses);
}

}  // namespace

TEST_CASE("nothing is said of a target that has not been watched for a while") {
  Window window(10s);
  CHECK(window.gauges().request_rate == 0);
  window.push(sample(0, TurnCounters{.requests = 100, .overlapped = 100}, {}, {.lost = 7}));
  CHECK(holding(window).empty());
  CHECK(window.gauges().request_rate == 0);
}

TEST_CASE("whether there are few samples is what the gauges say") {
  const Window window = between(sample(0), sample(kSecond, TurnCounters{}));
  const auto few = static_cast<std::size_t>(Condition::few_samples);
  CHECK(judge(window, true).at(few) == true);
  CHECK(judge(window, false).at(few) == false);
}

TEST_CASE("a healthy target has no condition, an idle one neither") {
  CHECK(after({.requests = 1'000}, {.completed = 1'000, .nonblocking = 100}).empty());
  CHECK(after({}).empty());
}

TEST_CASE("where arrivals of data are not seen, durations begin too late; elsewhere there is nothing to judge") {
  WindowSample unseen = sample(kSecond, TurnCounters{.requests = 1});
  unseen.socket->queue_ns.reset();
  CHECK(holding(between(sample(0), unseen)) == Names{"unseen_arrivals"});
  CHECK_FALSE(seen(between(sample(0), sample(kSecond, TurnCounters{.requests = 1}))).contains("unseen_arrivals"));
}

TEST_CASE("requests that overlap make a target multiplexed above a tenth of them") {
  CHECK(after({.requests = 1'000, .overlapped = 100}, {.completed = 1}).empty());
  CHECK(after({.requests = 1'000, .overlapped = 101}, {.completed = 1}) == Names{"multiplexed"});
  CHECK(after({.overlapped = 5}).empty());  // none answered: nothing to judge
}

TEST_CASE("several requests in one read make a target multiplexed above a tenth of those looked at") {
  CHECK(after({.requests = 1'000, .sampled = 100, .repeated = 10}, {.completed = 1}).empty());
  CHECK(after({.requests = 1'000, .sampled = 100, .repeated = 11}, {.completed = 1}) == Names{"multiplexed"});
}

TEST_CASE("messages without a reply are told above a tenth of all messages") {
  CHECK(after({.requests = 90, .one_way = 10}, {.completed = 1}).empty());
  CHECK(after({.requests = 89, .one_way = 11}, {.completed = 1}) == Names{"one_way"});
  CHECK(after({.requests = 0, .one_way = 1}, {.completed = 1}) == Names{"one_way"});
}

TEST_CASE("polls that do not wait make a target busy polling above half of them") {
  CHECK(after({}, {.completed = 10, .nonblocking = 5}).empty());
  CHECK(after({}, {.completed = 10, .nonblocking = 6}) == Names{"busy_polling"});
}

TEST_CASE("requests without polls say that there is no poll to judge by") {
  CHECK(after({.requests = 1}) == Names{"no_poll"});
  CHECK(after({.requests = 1}, {.completed = 1}).empty());
}

TEST_CASE("where only sleeps are seen, nothing is said about polls that do not wait") {
  CHECK(seen(between(sample(0), sample(kSecond, {}, PollCounters{.only_sleeps = true}))) == Names{"lost_events"});
}

TEST_CASE("where only sleeps are seen, a server that has slept in a poll is no server without polls") {
  const auto polls = [](std::uint64_t completed, std::uint64_t started) {
    return PollCounters{.completed = completed, .started = started, .only_sleeps = true};
  };
  CHECK(after({.requests = 1}, polls(0, 0)) == Names{"no_poll"});
  CHECK(after({.requests = 1}, polls(0, 1)) == Names{"unseen_polls"});
}

TEST_CASE("fewer sleeps than half of the requests say that polls returned at once") {
  const auto polls = [](std::uint64_t completed) {
    return PollCounters{.completed = completed, .started = completed, .only_sleeps = true};
  };
  CHECK(after({.requests = 1'000}, polls(500)).empty());
  CHECK(after({.requests = 1'000}, polls(499)) == Names{"unseen_polls"});
  CHECK(after({}, polls(1)).empty());
  CHECK(after({.requests = 1'000}, {.completed = 499, .started = 499}).empty());
}

TEST_CASE("any lost event is told while it is in the window") {
  CHECK(after_losses({.lost = 1}) == Names{"lost_events"});
  CHECK(after_losses({.lost = 1, .requests = 1'000'000}) == Names{"lost_events"});
  Window window(2s);
  window.push(sample(0));
  window.push(sample(kSecond, {}, {}, {.lost = 1}));
  window.push(sample(2 * kSecond, {}, {}, {.lost = 1}));
  CHECK(holding(window) == Names{"lost_events"});
  window.push(sample(3 * kSecond, {}, {}, {.lost = 1}));
  CHECK(holding(window).empty());
}

TEST_CASE("calls that overlap are told above one in ten") {
  CHECK(after({.calls = 100, .calls_overlapped = 10}).empty());
  CHECK(after({.calls = 100, .calls_overlapped = 11}) == Names{"multiplexed_calls"});
  CHECK(after({.calls = 1'000, .calls_sampled = 100, .calls_repeated = 10}).empty());
  CHECK(after({.calls = 1'000, .calls_sampled = 100, .calls_repeated = 11}) == Names{"multiplexed_calls"});
}

TEST_CASE("events that the kernel kept from the programs are told above a thousandth of all requests") {
  CHECK(after_losses({.skipped = 1}) == Names{"lost_events"});
  CHECK(after_losses({.skipped = 1, .requests = 999}) == Names{"lost_events"});
  CHECK(after_losses({.skipped = 1, .requests = 1'000}).empty());
  CHECK(after_losses({.skipped = 11, .requests = 10'000}) == Names{"lost_events"});
}

TEST_CASE("only what happened within the window counts") {
  Window window(10s);
  TurnCounters turns;
  PollCounters polls;
  window.push(sample(0, turns, polls));
  turns = {.requests = 1'000, .overlapped = 1'000};  // long ago
  window.push(sample(kSecond, turns, polls));
  CHECK(holding(window) == Names{"multiplexed", "no_poll"});
  for (int second = 2; second <= 11; ++second) {
    turns.requests += 50;
    polls.completed += 50;
    window.push(sample(second * kSecond, turns, polls));
  }
  CHECK(holding(window).empty());
  CHECK(window.gauges().request_rate == Approx(50));
}

TEST_CASE("the rate is that of the window, however the samples are spaced") {
  Window window(10s);
  window.push(sample(0, TurnCounters{.requests = 0}));
  window.push(sample(kSecond / 2, TurnCounters{.requests = 100}));
  CHECK(window.gauges().request_rate == Approx(200));
  window.push(sample(4 * kSecond, TurnCounters{.requests = 100}));
  CHECK(window.gauges().request_rate == Approx(25));
  window.push(sample(60 * kSecond, TurnCounters{.requests = 660}));  // after a pause of the sampler
  CHECK(window.gauges().request_rate == Approx(10));
}

TEST_CASE("two samples at the same time give no rate") {
  Window window(10s);
  window.push(sample(kSecond, TurnCounters{.requests = 0}));
  window.push(sample(kSecond, TurnCounters{.requests = 9}));
  CHECK(window.gauges().request_rate == 0);
}

TEST_CASE("a condition is told only where its probes see") {
  const auto seen_with = [](std::optional<TurnCounters> turns, std::optional<PollCounters> polls) {
    return seen(between(sample(0), sample(kSecond, turns, polls)));
  };
  const TurnCounters busy{.requests = 1'000};
  CHECK(seen_with(busy, PollCounters{}) ==
        Names{"multiplexed", "busy_polling", "few_samples", "no_poll", "lost_events", "one_way", "multiplexed_calls"});
  // The poll probe is off, as in a sidecar: that a server does not poll cannot be known.
  CHECK(seen_with(busy, {}) == Names{"multiplexed", "few_samples", "lost_events", "one_way", "multiplexed_calls"});
  CHECK(seen_with({}, PollCounters{.completed = 9}) == Names{"busy_polling", "lost_events"});
  CHECK(seen_with({}, {}) == Names{"lost_events"});
  CHECK(seen(between(sample(0), frozen(kSecond, false))) == Names{"lost_events", "frozen"});
  WindowSample deaf = sample(kSecond);
  deaf.socket.emplace();  // the probe is on, its hooks are not attached
  CHECK(seen(between(sample(0), deaf)) == Names{"lost_events"});
}

TEST_CASE("what is shed raises a condition, and is no evidence for others") {
  const auto at = [](std::optional<ShedLevel> level) {
    // No poll was completed, and all were non-blocking before.
    const Window window = between(sample(0), sample(kSecond, TurnCounters{.requests = 1'000}, PollCounters{}));
    Names names;
    const Conditions found = judge(window, true, level);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found.at(i)) {
        names.insert(std::string(condition_table()[i].name) + (*found.at(i) ? "" : "=0"));
      }
    }
    return names;
  };
  const Names rest{"multiplexed=0", "lost_events=0", "one_way=0", "multiplexed_calls=0"};
  const auto with = [&rest](Names more) {
    more.insert(rest.begin(), rest.end());
    return more;
  };
  CHECK(at({}) == with({"few_samples", "busy_polling=0", "no_poll"}));
  CHECK(at(TACHO_SHED_NOTHING) == with({"few_samples", "busy_polling=0", "no_poll", "shed=0", "shed_requests=0"}));
  CHECK(at(TACHO_SHED_INTERVALS) == with({"busy_polling=0", "no_poll", "shed", "shed_requests=0"}));
  CHECK(at(TACHO_SHED_POLLS) == with({"shed", "shed_requests=0"}));
  CHECK(at(TACHO_SHED_ANATOMY) == with({"shed", "shed_requests=0"}));
  CHECK(at(TACHO_SHED_STREAMS) == with({"shed", "shed_requests"}));
  CHECK(at(TACHO_SHED_SOCKETS) == with({"shed", "shed_requests"}));
}

TEST_CASE("every condition has a name in the family, and the family's label is reserved") {
  const auto families = condition_families();
  REQUIRE(families.size() == 1);
  CHECK(families[0].values.size() == kConditions);
  CHECK_FALSE(tacho::config::check_label_name(families[0].label));
  for (std::size_t i = 0; i < kConditions; ++i) {
    const auto name = entry(static_cast<Condition>(i)).name;
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
  for (const auto& judged : judged_families()) {
    for (const auto& family : judged.families) {
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
  CHECK(holding(between(frozen(0, false), frozen(kSecond, true))) == Names{"frozen"});
  CHECK(holding(between(frozen(0, true), frozen(kSecond, false))).empty());
}

TEST_CASE("what says nothing about saturation does not judge it") {
  for (const std::string_view condition : {"busy_polling", "few_samples", "no_poll"}) {
    CHECK_FALSE(invalidates(condition, "tacho_saturation_ratio"));
  }
  for (const std::string_view condition : {"multiplexed", "lost_events", "frozen"}) {
    CHECK(invalidates(condition, "tacho_saturation_ratio"));
  }
}
