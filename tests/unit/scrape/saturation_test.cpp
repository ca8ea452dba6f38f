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

double ratio(const SaturationWatch& watch) {
  return watch.estimate().value().ratio;
}

double error(const SaturationWatch& watch) {
  return watch.estimate().value().error;
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
  CHECK_THAT(ratio(steady(0.5, 0.2, 1)), WithinAbs(0.5, 1e-9));
  CHECK_THAT(ratio(steady(0.5, 1.4, 2)), WithinAbs(0.7, 1e-9));
  CHECK(ratio(steady(0, 0, 4)) == 0);
}

TEST_CASE("more running time than the CPUs have is saturation, and no more than that") {
  CHECK(ratio(steady(0, 3, 2)) == 1);
}

TEST_CASE("where CPUs are not known the queue alone is judged") {
  CHECK_THAT(ratio(steady(0.5, 5, 0)), WithinAbs(0.5, 1e-9));
}

TEST_CASE("saturation is that of the window, not of the time before it") {
  SaturationWatch watch = steady(0, 1, 1);
  CHECK_THAT(ratio(watch), WithinAbs(1, 1e-9));
  for (int i = 21; i <= 30; ++i) {
    watch.push({.time_ns = i * kSecond, .queue_ns = 0, .running_ns = 20ULL * kSecond, .cores = 1});
  }
  CHECK(ratio(watch) == 0);
}

TEST_CASE("nothing is said before there are two samples, and a clock or counter that goes back does no harm") {
  SaturationWatch watch(10s);
  CHECK_FALSE(watch.estimate());
  watch.push({.time_ns = kSecond, .queue_ns = 100, .running_ns = 100, .cores = 1});
  CHECK_FALSE(watch.estimate());
  watch.push({.time_ns = 2 * kSecond, .queue_ns = 50, .running_ns = 50, .cores = 1});
  CHECK(ratio(watch) == 0);
  watch.push({.time_ns = kSecond, .queue_ns = 5 * kSecond, .running_ns = 5 * kSecond, .cores = 1});
  CHECK_FALSE(watch.estimate());
}

TEST_CASE("a part that could not be seen is not 0") {
  const auto after_a_second = [](const SaturationSample& sample) {
    SaturationWatch watch(10s);
    watch.push({.time_ns = 0, .queue_ns = {}, .running_ns = {}});
    watch.push(sample);
    return watch.estimate();
  };
  CHECK_FALSE(after_a_second({.time_ns = kSecond, .queue_ns = {}, .running_ns = {}, .cores = 1}));
  CHECK_FALSE(after_a_second({.time_ns = kSecond, .queue_ns = {}, .running_ns = kSecond / 2}));
  CHECK_THAT(after_a_second({.time_ns = kSecond, .queue_ns = {}, .running_ns = kSecond / 2, .cores = 1}).value().ratio,
             WithinAbs(0.5, 1e-9));
  CHECK_THAT(after_a_second({.time_ns = kSecond, .queue_ns = kSecond / 2, .running_ns = {}, .cores = 1}).value().ratio,
             WithinAbs(0.5, 1e-9));
}

TEST_CASE("an idle target is there, with a small ratio and a small error") {
  const SaturationWatch watch = steady(0, 0.001, 1);
  CHECK(ratio(watch) < 0.01);
  CHECK_THAT(error(watch), WithinAbs(std::sqrt(1.0 / 12) / 10, 1e-6));
}

TEST_CASE("the error is that of one second at first, and falls with what the window has seen") {
  CHECK_THAT(error(steady(0, 1, 1, 1)), WithinAbs(0.2887, 1e-4));
  CHECK_THAT(error(steady(0, 1, 1, 2)), WithinAbs(0.2887 / 2, 1e-4));
  CHECK_THAT(error(steady(0, 1, 1, 5)), WithinAbs(0.2887 / 5, 1e-4));
  CHECK_THAT(error(steady(0, 1, 1, 30)), WithinAbs(0.02887, 1e-4));
}

TEST_CASE("the error is the standard error of the mean of the seconds") {
  // Ten seconds, every other one of which runs all the time.
  SaturationWatch watch(10s);
  std::uint64_t running = 0;
  watch.push({.time_ns = 0, .queue_ns = 0, .running_ns = 0, .cores = 1});
  for (int i = 1; i <= 10; ++i) {
    running += i % 2 == 0 ? std::uint64_t{kSecond} : 0U;
    watch.push({.time_ns = i * kSecond, .queue_ns = 0, .running_ns = running, .cores = 1});
  }
  CHECK_THAT(ratio(watch), WithinAbs(0.5, 1e-9));
  CHECK_THAT(error(watch), WithinAbs(std::sqrt(0.25 / 10 + 1.0 / 12 / 100), 1e-9));
}

TEST_CASE("a queue's error is that of its length, by how much the ratio follows it") {
  // Two seconds with 0 and 2 waiting: one on average, ρ = 0.618, dρ/dLq = 0.1708.
  SaturationWatch watch(10s);
  watch.push({.time_ns = 0, .queue_ns = 0, .running_ns = 0, .cores = 1});
  watch.push({.time_ns = kSecond, .queue_ns = 0, .running_ns = 0, .cores = 1});
  watch.push({.time_ns = 2 * kSecond, .queue_ns = 2ULL * kSecond, .running_ns = 0, .cores = 1});
  CHECK_THAT(ratio(watch), WithinAbs(0.6180, 1e-4));
  const double slope = (utilisation_of_queue(1 + 1e-6) - utilisation_of_queue(1 - 1e-6)) / 2e-6;
  CHECK_THAT(error(watch), WithinAbs(std::sqrt(slope * slope / 2 + 1.0 / 12 / 4), 1e-6));
}
