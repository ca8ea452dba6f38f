#include "scrape/saturation.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>

using namespace std::chrono_literals;
using Catch::Matchers::WithinAbs;
using tacho::scrape::SaturationSample;
using tacho::scrape::SaturationWatch;
using tacho::scrape::utilisation_of_queue;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// A target that for `seconds` has `waiting` requests unread and runs on `running` of `cores` CPUs, sampled once a
/// second.
SaturationWatch steady(double waiting, double running, double cores, int seconds = 20) {
  SaturationWatch watch(10s);
  for (int i = 0; i <= seconds; ++i) {
    watch.push({.time_ns = i * kSecond,
                .queue_ns = static_cast<std::uint64_t>(waiting * i * kSecond),
                .running_ns = static_cast<std::uint64_t>(running * i * kSecond),
                .cores = cores});
  }
  return watch;
}

}  // namespace

TEST_CASE("the utilisation of a queue is that of M/M/1 with as many waiting") {
  CHECK(utilisation_of_queue(0) == 0);
  for (const double rho : {0.001, 0.1, 0.5, 0.8, 0.99, 0.999999}) {
    CHECK_THAT(utilisation_of_queue(rho * rho / (1 - rho)), WithinAbs(rho, 1e-9));
  }
  CHECK_THAT(utilisation_of_queue(1e15), WithinAbs(1, 1e-9));
  CHECK(utilisation_of_queue(1e300) <= 1);
}

TEST_CASE("saturation is the larger one of the queue's and the CPUs' utilisation") {
  CHECK_THAT(steady(0.5, 0.2, 1).ratio(), WithinAbs(0.5, 1e-9));
  CHECK_THAT(steady(0.5, 1.4, 2).ratio(), WithinAbs(0.7, 1e-9));
  CHECK(steady(0, 0, 4).ratio() == 0);
}

TEST_CASE("more running time than the CPUs have is saturation, and no more than that") {
  CHECK(steady(0, 3, 2).ratio() == 1);
}

TEST_CASE("without the probe sched the queue alone is judged") {
  CHECK_THAT(steady(0.5, 5, 0).ratio(), WithinAbs(0.5, 1e-9));
}

TEST_CASE("saturation is that of the window, not of the time before it") {
  SaturationWatch watch = steady(0, 1, 1);
  CHECK_THAT(watch.ratio(), WithinAbs(1, 1e-9));
  for (int i = 21; i <= 30; ++i) {
    watch.push({.time_ns = i * kSecond, .queue_ns = 0, .running_ns = 20ULL * kSecond, .cores = 1});
  }
  CHECK(watch.ratio() == 0);
}

TEST_CASE("nothing is said before there are two samples, and a clock or counter that goes back does no harm") {
  SaturationWatch watch(10s);
  CHECK(watch.ratio() == 0);
  watch.push({.time_ns = kSecond, .queue_ns = 100, .running_ns = 100, .cores = 1});
  CHECK(watch.ratio() == 0);
  watch.push({.time_ns = 2 * kSecond, .queue_ns = 50, .running_ns = 50, .cores = 1});
  CHECK(watch.ratio() == 0);
  watch.push({.time_ns = kSecond, .queue_ns = 5 * kSecond, .running_ns = 5 * kSecond, .cores = 1});
  CHECK(watch.ratio() == 0);
}
