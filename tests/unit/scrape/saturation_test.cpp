#include "scrape/saturation.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>

using namespace std::chrono_literals;
using Catch::Matchers::WithinAbs;
using tacho::metrics::Window;
using tacho::metrics::WindowSample;
using tacho::scrape::saturation;
using tacho::scrape::utilisation_of_queue;

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

using Time = std::optional<std::uint64_t>;

/// What has been seen up to a time.
/// @param queue_ns that requests waited
/// @param running_ns that threads ran, on `cores` CPUs
WindowSample sample(std::int64_t time_ns, Time queue_ns, Time running_ns, double cores) {
  WindowSample sample;
  sample.time_ns = time_ns;
  sample.socket.emplace().queue_ns = queue_ns;
  sample.threads = {.running_ns = running_ns, .cores = cores, .frozen = {}};
  return sample;
}

/// A target that for `seconds` has `waiting` requests unread and runs on `running` of `cores` CPUs, sampled once a
/// second.
Window steady(double waiting, double running, double cores, int seconds = 20, std::chrono::seconds length = 10s) {
  Window window(length);
  for (int i = 0; i <= seconds; ++i) {
    window.push(sample(i * kSecond, static_cast<std::uint64_t>(waiting * i * kSecond),
                       static_cast<std::uint64_t>(running * i * kSecond), cores));
  }
  return window;
}

double ratio(const Window& window) {
  return saturation(window.samples()).value().ratio;
}

double error(const Window& window) {
  return saturation(window.samples()).value().error;
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
  Window window = steady(0, 1, 1);
  CHECK_THAT(ratio(window), WithinAbs(1, 1e-9));
  for (int i = 21; i <= 30; ++i) {
    window.push(sample(i * kSecond, 0, 20ULL * kSecond, 1));
  }
  CHECK(ratio(window) == 0);
}

TEST_CASE("nothing is said before there are two samples, and a clock or counter that goes back does no harm") {
  Window window(10s);
  CHECK_FALSE(saturation(window.samples()));
  window.push(sample(kSecond, 100, 100, 1));
  CHECK_FALSE(saturation(window.samples()));
  window.push(sample(2 * kSecond, 50, 50, 1));
  CHECK(ratio(window) == 0);
  window.push(sample(kSecond, 5ULL * kSecond, 5ULL * kSecond, 1));
  CHECK_FALSE(saturation(window.samples()));
}

TEST_CASE("a part that could not be seen is not 0") {
  const auto after_a_second = [](const WindowSample& later) {
    Window window(10s);
    window.push(sample(0, {}, {}, 0));
    window.push(later);
    return saturation(window.samples());
  };
  CHECK_FALSE(after_a_second(sample(kSecond, {}, {}, 1)));
  CHECK_FALSE(after_a_second(sample(kSecond, {}, std::uint64_t{kSecond} / 2, 0)));
  CHECK_THAT(after_a_second(sample(kSecond, {}, std::uint64_t{kSecond} / 2, 1)).value().ratio, WithinAbs(0.5, 1e-9));
  CHECK_THAT(after_a_second(sample(kSecond, std::uint64_t{kSecond} / 2, {}, 1)).value().ratio, WithinAbs(0.5, 1e-9));
}

TEST_CASE("an idle target is there, with a small ratio and a small error") {
  const Window window = steady(0, 0.001, 1);
  CHECK(ratio(window) < 0.01);
  CHECK_THAT(error(window), WithinAbs(std::sqrt(1.0 / 12) / 10, 1e-6));
}

TEST_CASE("the error is that of one second at first, and falls with what the window has seen") {
  CHECK_THAT(error(steady(0, 1, 1, 1)), WithinAbs(0.2887, 1e-4));
  CHECK_THAT(error(steady(0, 1, 1, 2)), WithinAbs(0.2887 / 2, 1e-4));
  CHECK_THAT(error(steady(0, 1, 1, 5)), WithinAbs(0.2887 / 5, 1e-4));
  CHECK_THAT(error(steady(0, 1, 1, 30)), WithinAbs(0.02887, 1e-4));
}

TEST_CASE("of a long window as many seconds count as there were, though fewer samples are kept") {
  const Window window = steady(0, 1, 1, 400, 300s);
  CHECK(window.samples().size() < 60);
  CHECK_THAT(error(window), WithinAbs(0.2887 / 300, 1e-5));
}

TEST_CASE("the error is the standard error of the mean of the seconds") {
  // Ten seconds, every other one of which runs all the time.
  Window window(10s);
  std::uint64_t running = 0;
  window.push(sample(0, 0, 0, 1));
  for (int i = 1; i <= 10; ++i) {
    running += i % 2 == 0 ? std::uint64_t{kSecond} : 0U;
    window.push(sample(i * kSecond, 0, running, 1));
  }
  CHECK_THAT(ratio(window), WithinAbs(0.5, 1e-9));
  CHECK_THAT(error(window), WithinAbs(std::sqrt(0.25 / 10 + 1.0 / 12 / 100), 1e-9));
}

TEST_CASE("a queue's error is that of its length, by how much the ratio follows it") {
  // Two seconds with 0 and 2 waiting: one on average, ρ = 0.618, dρ/dLq = 0.1708.
  Window window(10s);
  window.push(sample(0, 0, 0, 1));
  window.push(sample(kSecond, 0, 0, 1));
  window.push(sample(2 * kSecond, 2ULL * kSecond, 0, 1));
  CHECK_THAT(ratio(window), WithinAbs(0.6180, 1e-4));
  const double slope = (utilisation_of_queue(1 + 1e-6) - utilisation_of_queue(1 - 1e-6)) / 2e-6;
  CHECK_THAT(error(window), WithinAbs(std::sqrt(slope * slope / 2 + 1.0 / 12 / 4), 1e-6));
}
