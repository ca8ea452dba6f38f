#include "scrape/conditions.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <set>
#include <string>

#include "config/labels.h"

using tacho::probes::ConditionCounters;
using namespace tacho::scrape;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// Names of the conditions that hold.
std::set<std::string> holding(const ConditionWatch& watch, bool few_samples = false) {
  const auto on = watch.evaluate(few_samples);
  std::set<std::string> names;
  for (std::size_t i = 0; i < on.size(); ++i) {
    if (on.at(i)) {
      names.insert(std::string(condition_name(static_cast<Condition>(i))));
    }
  }
  return names;
}

using Names = std::set<std::string>;

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
  CHECK(holding(watch, true) == Names{"few_samples"});
  CHECK(watch.request_rate() == 0);
  watch.push(0, {.requests = 100, .overlapped = 100}, {.lost = 7});
  CHECK(holding(watch).empty());
  CHECK(watch.request_rate() == 0);
}

TEST_CASE("a healthy target has no condition, an idle one neither") {
  CHECK(after({.requests = 1'000, .poll_calls = 1'000, .poll_nonblocking = 100}).empty());
  CHECK(after({}).empty());
}

TEST_CASE("requests that overlap make a target multiplexed above a tenth of them") {
  CHECK(after({.requests = 1'000, .overlapped = 100, .poll_calls = 1}).empty());
  CHECK(after({.requests = 1'000, .overlapped = 101, .poll_calls = 1}) == Names{"multiplexed"});
  CHECK(after({.overlapped = 5}).empty());  // none answered: nothing to judge
}

TEST_CASE("several requests in one read make a target multiplexed above a tenth of those looked at") {
  CHECK(after({.requests = 1'000, .sampled = 100, .repeated = 10, .poll_calls = 1}).empty());
  CHECK(after({.requests = 1'000, .sampled = 100, .repeated = 11, .poll_calls = 1}) == Names{"multiplexed"});
}

TEST_CASE("polls that do not wait make a target busy polling above half of them") {
  CHECK(after({.poll_calls = 10, .poll_nonblocking = 5}).empty());
  CHECK(after({.poll_calls = 10, .poll_nonblocking = 6}) == Names{"busy_polling"});
}

TEST_CASE("requests without polls say that there is no poll to judge by") {
  CHECK(after({.requests = 1}) == Names{"no_poll"});
  CHECK(after({.requests = 1, .poll_calls = 1}).empty());
}

TEST_CASE("any lost event is told while it is in the window") {
  CHECK(after({}, {.lost = 1}) == Names{"lost_events"});
  CHECK(after({}, {.lost = 1, .requests = 1'000'000}) == Names{"lost_events"});
  ConditionWatch watch(2s);
  watch.push(0, {}, {});
  watch.push(kSecond, {}, {.lost = 1});
  watch.push(2 * kSecond, {}, {.lost = 1});
  CHECK(holding(watch) == Names{"lost_events"});
  watch.push(3 * kSecond, {}, {.lost = 1});
  CHECK(holding(watch).empty());
}

TEST_CASE("events that the kernel kept from the programs are told above a thousandth of all requests") {
  CHECK(after({}, {.skipped = 1}) == Names{"lost_events"});
  CHECK(after({}, {.skipped = 1, .requests = 999}) == Names{"lost_events"});
  CHECK(after({}, {.skipped = 1, .requests = 1'000}).empty());
  CHECK(after({}, {.skipped = 11, .requests = 10'000}) == Names{"lost_events"});
}

TEST_CASE("only what happened within the window counts") {
  ConditionWatch watch(10s);
  ConditionCounters counters;
  watch.push(0, counters, {});
  counters = {.requests = 1'000, .overlapped = 1'000};  // long ago
  watch.push(kSecond, counters, {});
  CHECK(holding(watch) == Names{"multiplexed", "no_poll"});
  for (int second = 2; second <= 11; ++second) {
    counters.requests += 50;
    counters.poll_calls += 50;
    watch.push(second * kSecond, counters, {});
  }
  CHECK(holding(watch).empty());
  CHECK(watch.request_rate() == Approx(50));
}

TEST_CASE("the rate is that of the window, however the samples are spaced") {
  ConditionWatch watch(10s);
  watch.push(0, {.requests = 0}, {});
  watch.push(kSecond / 2, {.requests = 100}, {});
  CHECK(watch.request_rate() == Approx(200));
  watch.push(4 * kSecond, {.requests = 100}, {});
  CHECK(watch.request_rate() == Approx(25));
  watch.push(60 * kSecond, {.requests = 660}, {});  // after a pause of the sampler
  CHECK(watch.request_rate() == Approx(10));
}

TEST_CASE("two samples at the same time give no rate") {
  ConditionWatch watch(10s);
  watch.push(kSecond, {.requests = 0}, {});
  watch.push(kSecond, {.requests = 9}, {});
  CHECK(watch.request_rate() == 0);
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
    CHECK(families[0].help.find(std::string(name) + ":") != std::string_view::npos);
  }
}
