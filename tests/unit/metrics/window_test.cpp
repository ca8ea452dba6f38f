#include "metrics/window.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "unit/metrics/traffic.h"

namespace tacho::metrics {
namespace {

using namespace std::chrono_literals;
using test::kSecond;
using test::Traffic;

constexpr auto kSend = static_cast<std::size_t>(Direction::send);
constexpr auto kReceive = static_cast<std::size_t>(Direction::receive);

double mean(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double variance(const std::vector<double>& x) {
  const double m = mean(x);
  return std::accumulate(x.begin(), x.end(), 0.0, [m](double sum, double v) { return sum + (v - m) * (v - m); }) /
         static_cast<double>(x.size());
}

void sample_every_second(Window& window, const Traffic& traffic, std::int64_t from, std::int64_t to) {
  for (std::int64_t t = from; t <= to; t += kSecond) {
    window.push(traffic.counters_at(t));
  }
}

TEST_CASE("no sample, one sample, nothing sent: all zero") {
  Window window(10s);
  const auto all_zero = [&] {
    return window.gauges().observed_rps == 0 && window.gauges().variance[kSend] == 0 &&
           window.gauges().cv2[kReceive] == 0 && window.gauges().poll_mean == 0 && window.gauges().few_samples;
  };
  CHECK(all_zero());
  WindowSample sample;
  sample.socket.emplace().direction[0] = {5000, 5000, 4999, 0, 4'999'000'000, 0, 5'000'000'000'000'000};
  sample.poll = {.completed = 0, .nonblocking = 0, .started = 7, .ns = 12345};
  window.push(sample);
  CHECK(all_zero());
  sample.time_ns = kSecond;
  window.push(sample);
  CHECK(all_zero());
}

TEST_CASE("rate, variance and cv2 of a busy Poisson server over the window") {
  std::mt19937_64 random(12);
  Traffic traffic;
  traffic.send_poisson(random, 0, 30 * kSecond, 700);
  traffic.receives = traffic.sends;
  for (std::int64_t& t : traffic.receives) {
    t = t / 3 + 20 * kSecond - t % 1000;
  }
  std::ranges::sort(traffic.receives);
  Window window(10s);
  for (std::int64_t now = 0; now <= 29 * kSecond; now += kSecond) {
    window.push(traffic.counters_at(now));
    const std::int64_t from = std::max<std::int64_t>(now - 10 * kSecond, 0);
    const std::vector<double> sent = test::intervals(traffic.sends, from, now);
    const std::vector<double> received = test::intervals(traffic.receives, from, now);
    if (sent.size() < 2048 || received.empty()) {
      continue;
    }
    CHECK(window.gauges().observed_rps == Approx(test::naive_rps(traffic.sends, from, now)).epsilon(1e-12));
    CHECK(window.gauges().variance[kSend] == Approx(variance(sent)).epsilon(1e-9));
    CHECK(window.gauges().cv2[kSend] == Approx(variance(sent) / mean(sent) / mean(sent)).epsilon(1e-9));
    CHECK(window.gauges().variance[kReceive] == Approx(variance(received)).epsilon(1e-9));
    CHECK(window.gauges().cv2[kReceive] == Approx(variance(received) / mean(received) / mean(received)).epsilon(1e-9));
    CHECK_FALSE(window.gauges().few_samples);
  }
  CHECK(window.gauges().observed_rps == Approx(700).epsilon(0.05));
  CHECK(window.gauges().cv2[kSend] == Approx(1).epsilon(0.1));
}

TEST_CASE("a slow server: the last 2048 sends, whichever is longer") {
  std::mt19937_64 random(13);
  Traffic traffic;
  traffic.send_poisson(random, 0, 1000 * kSecond, 20);
  Window window(10s);
  for (std::int64_t now = 0; now < 1000 * kSecond; now += kSecond) {
    window.push(traffic.counters_at(now));
    const auto sent = static_cast<std::size_t>(std::ranges::upper_bound(traffic.sends, now) - traffic.sends.begin());
    if (sent < 2) {
      continue;
    }
    CAPTURE(now);
    // Somewhere between exactly 2048 sends and a tenth of their time more; before that everything there is.
    const std::size_t least = sent > 2048 ? sent - 2048 : 0;
    const std::int64_t latest = least == 0 ? 0 : traffic.sends[least];
    const std::int64_t earliest = std::max<std::int64_t>(latest - (now - latest) / 8 - 2 * kSecond, 0);
    bool found = false;
    for (std::int64_t from = earliest / kSecond * kSecond; from <= latest && !found; from += kSecond) {
      found = window.gauges().observed_rps == Approx(test::naive_rps(traffic.sends, from, now)).epsilon(1e-12);
    }
    const bool sending = !test::intervals(traffic.sends, now - 10 * kSecond, now).empty();
    REQUIRE(found == sending);
    REQUIRE(window.gauges().few_samples == (sent <= 2048 || window.gauges().observed_rps == 0 ||
                                            test::intervals(traffic.sends, now - 10 * kSecond, now).size() < 100));
  }
}

TEST_CASE("few samples in the window, though the rate stands on enough") {
  std::mt19937_64 random(17);
  Traffic traffic;
  traffic.send_poisson(random, 0, 20 * kSecond, 1000);
  traffic.send_poisson(random, 20 * kSecond, 40 * kSecond, 5);
  Window window(10s);
  sample_every_second(window, traffic, 0, 20 * kSecond);
  CHECK_FALSE(window.gauges().few_samples);
  sample_every_second(window, traffic, 21 * kSecond, 39 * kSecond);
  CHECK(window.gauges().few_samples);
  CHECK(window.gauges().observed_rps > 5);
}

TEST_CASE("idle gaps count for the rate, not for the variance; silence in the window is 0") {
  Traffic traffic;
  for (std::int64_t burst = 0; burst < 4; ++burst) {
    for (std::int64_t i = 0; i < 50; ++i) {
      traffic.sends.push_back(burst * 30 * kSecond + i * 1'000'000);
    }
  }
  Window window(10s);
  sample_every_second(window, traffic, 0, 31 * kSecond);
  CHECK(window.gauges().observed_rps == Approx(99 / 30.049).epsilon(1e-12));
  CHECK(window.gauges().variance[kSend] == 0);
  CHECK(window.gauges().cv2[kSend] == 0);
  CHECK(window.gauges().few_samples);
  sample_every_second(window, traffic, 32 * kSecond, 45 * kSecond);
  CHECK(window.gauges().observed_rps == 0);
  sample_every_second(window, traffic, 46 * kSecond, 61 * kSecond);
  CHECK(window.gauges().observed_rps == Approx(149 / 60.049).epsilon(1e-12));
}

TEST_CASE("the sampler's jitter does not make the window one sample longer") {
  Traffic traffic;
  for (std::int64_t t = 0; t < 40 * kSecond; t += 1'000'000) {
    traffic.waits.emplace_back(t, t + 500'000);
  }
  std::mt19937_64 random(14);
  Window window(10s);
  for (std::int64_t i = 0; i < 30; ++i) {
    window.push(traffic.counters_at(i * kSecond + static_cast<std::int64_t>(random() % 20'000'000)));
    CHECK(window.memory() <= 16 * sizeof(WindowSample) + SendHistory::kCapacity * sizeof(SendPoint));
  }
}

TEST_CASE("poll mean, where only sleeps are seen: a busy server's requests are taken for its calls") {
  const auto mean = [](std::uint64_t started, std::uint64_t requests, bool only_sleeps) {
    Window window(10s);
    WindowSample sample;
    window.push(sample);
    sample.time_ns = 10'000'000'000;
    sample.socket.emplace().turns = TurnCounters{.requests = requests};
    sample.poll = {.started = started, .ns = 1'000'000'000, .only_sleeps = only_sleeps};
    window.push(sample);
    return window.gauges().poll_mean;
  };
  CHECK(mean(1'000, 500, true) == Approx(1e-3));
  CHECK(mean(1'000, 100'000, true) == Approx(1e-5));
  CHECK(mean(1'000, 100'000, false) == Approx(1e-3));
  CHECK(mean(0, 100'000, true) == Approx(1e-5));
}

TEST_CASE("poll mean: completed calls and waits in progress") {
  Window window(10s);
  Traffic traffic;
  SECTION("short waits") {
    for (std::int64_t t = 0; t < 20 * kSecond; t += 10'000'000) {
      traffic.waits.emplace_back(t, t + 4'000'000);
    }
    sample_every_second(window, traffic, 0, 15 * kSecond);
    CHECK(window.gauges().poll_mean == Approx(0.004).epsilon(0.01));
  }
  SECTION("one waiter throughout: the window's length") {
    traffic.waits.emplace_back(0, 1000 * kSecond);
    sample_every_second(window, traffic, 0, 3 * kSecond);
    CHECK(window.gauges().poll_mean == Approx(3));
    sample_every_second(window, traffic, 4 * kSecond, 50 * kSecond);
    CHECK(window.gauges().poll_mean == Approx(10));
  }
  SECTION("eight waiters throughout, whether or not one more call starts") {
    for (int i = 0; i < 8; ++i) {
      traffic.waits.emplace_back(0, 1000 * kSecond);
    }
    sample_every_second(window, traffic, 0, 20 * kSecond);
    CHECK(window.gauges().poll_mean == Approx(10));
    traffic.waits.emplace_back(21 * kSecond, 21 * kSecond);
    sample_every_second(window, traffic, 21 * kSecond, 25 * kSecond);
    CHECK(window.gauges().poll_mean == Approx(10));
  }
  SECTION("one waits throughout, one ends half-way") {
    traffic.waits = {{0, 1000 * kSecond}, {0, 15 * kSecond}};
    sample_every_second(window, traffic, 0, 20 * kSecond);
    CHECK(window.gauges().poll_mean == Approx(7.5));
  }
  SECTION("a wait that ended early in the window") {
    traffic.waits = {{0, 12 * kSecond}};
    sample_every_second(window, traffic, 0, 20 * kSecond);
    CHECK(window.gauges().poll_mean == Approx(2));
    sample_every_second(window, traffic, 21 * kSecond, 40 * kSecond);
    CHECK(window.gauges().poll_mean == 0);
  }
  SECTION("the elapsed part read a little late") {
    WindowSample sample;
    sample.poll = {.completed = 0, .nonblocking = 0, .started = 1, .ns = 0};
    window.push(sample);
    sample.time_ns = 10 * kSecond;
    sample.poll->ns = 10'000'500'000;
    window.push(sample);
    CHECK(window.gauges().poll_mean == Approx(10.0005));
  }
  SECTION("counters that were estimated too high fall a little") {
    WindowSample sample;
    sample.poll = {.completed = 0, .nonblocking = 0, .started = 3, .ns = 1000};
    window.push(sample);
    sample.time_ns = kSecond;
    sample.poll = {.completed = 0, .nonblocking = 0, .started = 2, .ns = 900};
    window.push(sample);
    CHECK(window.gauges().poll_mean == 0);
  }
}

TEST_CASE("a reset or time going backwards starts anew") {
  std::mt19937_64 random(15);
  Traffic traffic;
  traffic.send_poisson(random, 0, 40 * kSecond, 1000);
  Window window(10s);
  sample_every_second(window, traffic, 0, 20 * kSecond);
  REQUIRE(window.gauges().observed_rps == Approx(1000).epsilon(0.05));
  SECTION("counters") {
    window.push(Traffic{}.counters_at(21 * kSecond));
    CHECK(window.gauges().observed_rps == 0);
    Traffic fresh;
    fresh.send_poisson(random, 21 * kSecond, 30 * kSecond, 100);
    sample_every_second(window, fresh, 22 * kSecond, 29 * kSecond);
    CHECK(window.gauges().observed_rps ==
          Approx(test::naive_rps(fresh.sends, 21 * kSecond, 29 * kSecond)).epsilon(1e-12));
  }
  SECTION("any one of the counters that only grow") {
    const auto less = [&](auto counter) {
      Window other(10s);
      sample_every_second(other, traffic, 0, 20 * kSecond);
      WindowSample sample = traffic.counters_at(21 * kSecond);
      counter(sample.socket->direction[1]) = 5;
      other.push(sample);
      sample.time_ns += kSecond;
      counter(sample.socket->direction[1]) = 4;
      other.push(sample);
      return other.gauges().observed_rps == 0 && other.gauges().few_samples;
    };
    CHECK(less([](Moments& m) -> auto& { return m.operations; }));
    CHECK(less([](Moments& m) -> auto& { return m.intervals; }));
    CHECK(less([](Moments& m) -> auto& { return m.idle_gaps; }));
    CHECK(less([](Moments& m) -> auto& { return m.idle_gap_ns; }));
    CHECK(less([](Moments& m) -> auto& { return m.square_ns2; }));
    // Two CPUs out of order: not a reset.
    CHECK_FALSE(less([](Moments& m) -> auto& { return m.interval_ns; }));
  }
  SECTION("time alone") {
    WindowSample sample = traffic.counters_at(21 * kSecond);
    sample.time_ns = 19 * kSecond;
    window.push(sample);
    CHECK(window.gauges().observed_rps == 0);
    CHECK(window.samples().size() == 1);
    CHECK(window.memory() <= 16 * sizeof(WindowSample) + SendHistory::kCapacity * sizeof(SendPoint));
  }
  SECTION("time and counters") {
    window.push(traffic.counters_at(10 * kSecond));
    CHECK(window.gauges().observed_rps == 0);
    sample_every_second(window, traffic, 11 * kSecond, 15 * kSecond);
    CHECK(window.gauges().observed_rps ==
          Approx(test::naive_rps(traffic.sends, 10 * kSecond, 15 * kSecond)).epsilon(1e-12));
  }
  SECTION("the same time again") {
    window.push(traffic.counters_at(20 * kSecond));
    CHECK(window.gauges().observed_rps ==
          Approx(test::naive_rps(traffic.sends, 10 * kSecond, 20 * kSecond)).epsilon(1e-12));
  }
  SECTION("suspended for eight hours") {
    WindowSample later = traffic.counters_at(20 * kSecond);
    later.time_ns += 28800 * kSecond;
    ++later.socket->direction[0].operations;
    ++later.socket->direction[0].idle_gaps;
    later.socket->direction[0].idle_gap_ns += static_cast<std::uint64_t>(28800 * kSecond);
    window.push(later);
    CHECK(window.gauges().observed_rps == Approx(1 / (28800.0)));
    CHECK(window.gauges().variance[kSend] == 0);
    CHECK(window.gauges().few_samples);
  }
}

TEST_CASE("a long window sampled often stays small and close to its length") {
  Window window(300s);
  for (std::int64_t t = 0; t < 2000; ++t) {
    WindowSample sample;
    sample.time_ns = t * kSecond;
    Moments& sends = sample.socket.emplace().direction[0];
    sends.operations = static_cast<std::uint64_t>(t * t);
    sends.intervals = static_cast<std::uint64_t>(t * t);
    sends.interval_ns = t * kSecond;
    window.push(sample);
    REQUIRE(window.memory() <= 27 * 1024);
    if (t > 400) {
      // Between t - w and t there were t² − (t−w)² intervals in w seconds: 2t − w a second.
      const double width = 2 * static_cast<double>(t) - window.gauges().observed_rps;
      REQUIRE(width == Approx(300).margin(300.0 / 48));
    }
  }
}

TEST_CASE("any samples give finite results that are not negative") {
  std::mt19937_64 random(16);
  const auto any = [&] { return random() >> (random() % 64); };
  std::size_t wrong = 0;
  for (int round = 0; round < 300; ++round) {
    Window window(std::chrono::nanoseconds(static_cast<std::int64_t>(any() >> 1)));
    WindowSample sample;
    PollCounters& polls = sample.poll.emplace();
    auto& directions = sample.socket.emplace().direction;
    for (int i = 0; i < 100; ++i) {
      sample.time_ns += static_cast<std::int64_t>(any() >> 8) - (random() % 9 == 0 ? kSecond : 0);
      for (Moments& moments : directions) {
        moments += {any(), any(), any() >> 20, any() >> 20, static_cast<std::int64_t>(any()) >> 8, any() >> 20, any()};
      }
      polls.started = random() % 5 == 0 ? any() : polls.started + any() % 100;
      polls.ns = random() % 5 == 0 ? any() : polls.ns + any() % 1000;
      window.push(sample);
      for (const double x :
           {window.gauges().observed_rps, window.gauges().poll_mean, window.gauges().variance[kSend],
            window.gauges().variance[kReceive], window.gauges().cv2[kSend], window.gauges().cv2[kReceive]}) {
        wrong += std::isfinite(x) && x >= 0 ? 0U : 1U;
      }
      if (sample.time_ns > (std::int64_t{1} << 61)) {
        sample.time_ns = 0;
      }
    }
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace tacho::metrics
