#include "scrape/shedding.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

using tacho::config::Limits;
using tacho::config::Percent;
using namespace tacho::scrape;
using namespace std::chrono_literals;

namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000;
constexpr double kCpus = 4;

/// A target that would cost so many ns a second at each level, and uses what a level does without where that is less.
struct Model {
  std::array<std::uint64_t, TACHO_SHED_LEVELS> cost_ns{};
  std::optional<std::uint64_t> cpu_ns = kSecondNs;
  Shed shed{};

  [[nodiscard]] std::uint64_t cost() const { return cost_ns.at(shed.level()); }
  [[nodiscard]] Shedding::Step step() {
    ShedInput input{.own_ns = cost(), .cpu_ns = cpu_ns};
    for (std::size_t level = 1; level < cost_ns.size(); ++level) {
      input.helps.at(level) = cost_ns.at(level) < cost_ns.at(level - 1);
    }
    return {&shed, input};
  }
};

/// A policy and the targets that it decides on.
struct World {
  Limits limits;
  std::vector<Model> targets;
  Shedding policy;

  /// One second. @return how many levels changed
  std::size_t pass() {
    std::vector<Shedding::Step> steps;
    for (Model& target : targets) {
      steps.push_back(target.step());
    }
    return policy.run(steps, limits, kSecondNs, kCpus).size();
  }
  std::size_t pass(int seconds) {
    std::size_t changes = 0;
    for (int i = 0; i < seconds; ++i) {
      changes += pass();
    }
    return changes;
  }
  [[nodiscard]] ShedLevel level(std::size_t target = 0) const { return targets.at(target).shed.level(); }
};

constexpr std::uint64_t kMs = 1'000'000;

World one(std::array<std::uint64_t, TACHO_SHED_LEVELS> cost_ns) {
  World world;
  world.limits.overhead = Percent{100};  // 10 ms of a second
  world.targets = {{.cost_ns = cost_ns}};
  return world;
}

void set_cost(World& world, std::uint64_t ns) {
  world.targets.front().cost_ns.fill(ns);
}

}  // namespace

TEST_CASE("without limits nothing is shed, whatever it costs, and what was shed comes back when they go") {
  World world = one({90 * kMs, 80 * kMs, 70 * kMs, 60 * kMs, 50 * kMs, 40 * kMs});
  const Percent limit = std::exchange(world.limits.overhead, Percent{});
  CHECK(world.pass(100) == 0);
  world.limits.overhead = limit;
  world.pass(10);
  CHECK(world.level() == TACHO_SHED_SOCKETS);
  world.limits.overhead = {};
  CHECK(world.pass() == 1);
  CHECK(world.level() == TACHO_SHED_NOTHING);
}

TEST_CASE("a target at its limit sheds nothing, and one second above it is no reason") {
  World world = one({10 * kMs, 9 * kMs, 8 * kMs, 7 * kMs, 6 * kMs, 5 * kMs});
  CHECK(world.pass(100) == 0);
  for (int i = 0; i < 50; ++i) {
    set_cost(world, 90 * kMs);
    CHECK(world.pass() == 0);
    set_cost(world, 10 * kMs);
    CHECK(world.pass() == 0);
  }
}

TEST_CASE("a little above the limit a target sheds one level after the other, until it is below") {
  World world = one({14 * kMs, 13 * kMs, 12 * kMs, 11 * kMs, 9 * kMs, 1 * kMs});
  std::vector<ShedLevel> levels;
  for (int i = 0; i < 10; ++i) {
    world.pass();
    levels.push_back(world.level());
  }
  using enum tacho_shed;
  CHECK(levels == std::vector{TACHO_SHED_NOTHING, TACHO_SHED_INTERVALS, TACHO_SHED_INTERVALS, TACHO_SHED_POLLS,
                              TACHO_SHED_POLLS, TACHO_SHED_ANATOMY, TACHO_SHED_ANATOMY, TACHO_SHED_STREAMS,
                              TACHO_SHED_STREAMS, TACHO_SHED_STREAMS});
  CHECK(world.pass(1'000) == 0);
}

TEST_CASE("levels that save nothing are left out, on the way up and on the way down") {
  World world = one({14 * kMs, 14 * kMs, 11 * kMs, 11 * kMs, 11 * kMs, 4 * kMs});
  world.pass(2);
  CHECK(world.level() == TACHO_SHED_POLLS);
  world.pass(2);
  CHECK(world.level() == TACHO_SHED_SOCKETS);
  world.targets.front().cost_ns = {4 * kMs, 4 * kMs, 4 * kMs, 4 * kMs, 4 * kMs, 4 * kMs};
  world.pass(30);
  CHECK(world.level() == TACHO_SHED_POLLS);
  world.pass(30);
  CHECK(world.level() == TACHO_SHED_NOTHING);
  CHECK_FALSE(world.targets.front().shed.exhausted());
}

TEST_CASE("a storm is over in two seconds") {
  World world = one({100 * kMs, 90 * kMs, 80 * kMs, 70 * kMs, 60 * kMs, 6 * kMs});
  CHECK(world.pass(2) == 1);
  CHECK(world.level() == TACHO_SHED_SOCKETS);
  CHECK_FALSE(world.targets.front().shed.exhausted());
}

TEST_CASE("where nothing is left to shed that is said, and no longer when the cost is well below") {
  World world = one({100 * kMs, 90 * kMs, 90 * kMs, 90 * kMs, 90 * kMs, 90 * kMs});
  world.pass(4);
  CHECK(world.level() == TACHO_SHED_INTERVALS);
  CHECK(world.targets.front().shed.exhausted());
  CHECK(world.pass(100) == 0);
  CHECK(world.targets.front().shed.exhausted());
  set_cost(world, 4 * kMs);
  world.pass();
  CHECK_FALSE(world.targets.front().shed.exhausted());
}

TEST_CASE("below a thousandth of a CPU a target sheds nothing, however little it does itself") {
  World world = one({kMs - 1, 1, 1, 1, 1, 1});
  world.targets.front().cpu_ns = 1;
  CHECK(world.pass(100) == 0);
  set_cost(world, kMs);
  world.targets.front().cost_ns.back() = 0;
  world.pass(2);
  CHECK(world.level() == TACHO_SHED_SOCKETS);
}

TEST_CASE("without the target's CPU time only the machine's limit holds") {
  World world = one({900 * kMs, 90 * kMs, 80 * kMs, 70 * kMs, 60 * kMs, 6 * kMs});
  world.targets.front().cpu_ns.reset();
  CHECK(world.pass(100) == 0);
  world.limits.machine_overhead = Percent{200};  // of 4 CPUs: 80 ms
  world.pass(2);
  CHECK(world.level() > TACHO_SHED_NOTHING);
  world.pass(10);
  CHECK(world.targets.front().cost() <= 80 * kMs);
}

TEST_CASE(
    "a level is left when the target has been well below its limit for half a minute, and at once below nothing") {
  World world = one({14 * kMs, 13 * kMs, 8 * kMs, 8 * kMs, 8 * kMs, 8 * kMs});
  world.pass(4);
  REQUIRE(world.level() == TACHO_SHED_POLLS);
  set_cost(world, 5 * kMs);  // not well below
  CHECK(world.pass(100) == 0);
  set_cost(world, 4 * kMs);
  CHECK(world.pass(29) == 0);
  set_cost(world, 6 * kMs);
  CHECK(world.pass() == 0);
  set_cost(world, 4 * kMs);
  CHECK(world.pass(29) == 0);
  CHECK(world.pass() == 1);
  CHECK(world.level() == TACHO_SHED_INTERVALS);
  set_cost(world, 0);
  CHECK(world.pass(29) == 0);
  CHECK(world.pass() == 1);
  CHECK(world.level() == TACHO_SHED_NOTHING);
  // Load that has gone takes all levels with it.
  world.targets.front().cost_ns = {100 * kMs, 90 * kMs, 80 * kMs, 70 * kMs, 60 * kMs, 6 * kMs};
  world.pass(2);
  REQUIRE(world.level() == TACHO_SHED_SOCKETS);
  set_cost(world, 0);
  CHECK(world.pass(200) == 1);
  CHECK(world.level() == TACHO_SHED_NOTHING);
}

TEST_CASE("a level that is entered again at once stays twice as long each time, for an hour at most") {
  // Shed, it costs next to nothing; else too much.
  World world = one({20 * kMs, 2 * kMs, 2 * kMs, 2 * kMs, 2 * kMs, 2 * kMs});
  std::vector<int> stays;
  int since = 0;
  for (int second = 0; second < 40'000; ++second) {
    const bool shed = world.level() > TACHO_SHED_NOTHING;
    since = shed ? since + 1 : since;
    world.pass();
    if (shed && world.level() == TACHO_SHED_NOTHING) {
      stays.push_back(std::exchange(since, 0));
    }
  }
  REQUIRE(stays.size() > 8);
  CHECK(std::vector(stays.begin(), stays.begin() + 8) == std::vector{30, 60, 120, 240, 480, 960, 1'920, 3'600});
  CHECK(stays.back() == 3'600);
  // After a long time without it, the next one is as short as the first.
  set_cost(world, 2 * kMs);
  world.pass(3 * 3'600);
  CHECK(world.level() == TACHO_SHED_NOTHING);
  world.targets.front().cost_ns.front() = 20 * kMs;
  CHECK(world.pass(2) == 1);
  CHECK(world.pass(29) == 0);
  CHECK(world.pass() == 1);
}

TEST_CASE("where the machine's limit is exceeded those that cost most shed first, and no more than have to") {
  World world;
  world.limits.machine_overhead = Percent{100};  // of 4 CPUs: 40 ms
  for (const std::uint64_t ms : {4U, 30U, 2U, 12U}) {
    const std::uint64_t ns = ms * kMs;
    world.targets.push_back({.cost_ns = {ns, ns / 2, ns / 4, ns / 8, ns / 16, ns / 32}});
  }
  CHECK(world.pass() == 0);
  CHECK(world.pass() == 1);
  CHECK(world.level(1) == TACHO_SHED_INTERVALS);
  CHECK(world.pass(100) == 0);
  // Far above all that can shed.
  for (Model& target : world.targets) {
    for (std::uint64_t& ns : target.cost_ns) {
      ns *= 20;
    }
  }
  world.pass(4);
  CHECK(world.level(1) == TACHO_SHED_SOCKETS);
  CHECK(world.level(3) == TACHO_SHED_SOCKETS);
  // Load that has gone takes all levels with it; who costs next to nothing needs no room.
  for (Model& target : world.targets) {
    target.cost_ns.fill(0);
  }
  world.pass(60);
  for (std::size_t i = 0; i < world.targets.size(); ++i) {
    CHECK(world.level(i) == TACHO_SHED_NOTHING);
  }
}

TEST_CASE("targets that come back leave room below the machine's limit") {
  World world;
  world.limits.machine_overhead = Percent{100};  // 40 ms
  // Shed, each costs 2 ms; else 20: two of them are too many.
  for (int i = 0; i < 8; ++i) {
    world.targets.push_back({.cost_ns = {20 * kMs, 2 * kMs, 2 * kMs, 2 * kMs, 2 * kMs, 2 * kMs}});
  }
  world.pass(10);
  std::uint64_t most = 0;
  for (int second = 0; second < 3'600; ++second) {
    std::uint64_t all = 0;
    for (const Model& target : world.targets) {
      all += target.cost();
    }
    most = std::max(most, all);
    world.pass();
  }
  // One after the other, never all at a time.
  CHECK(most < 8 * 20 * kMs);
}

TEST_CASE("a level that is held is that of all targets") {
  World world = one({100 * kMs, 90 * kMs, 80 * kMs, 70 * kMs, 60 * kMs, 6 * kMs});
  world.limits.held_shed_level = TACHO_SHED_POLLS;
  CHECK(world.pass(10) == 1);
  CHECK(world.level() == TACHO_SHED_POLLS);
  world.limits.held_shed_level.reset();
  world.pass(2);
  CHECK(world.level() == TACHO_SHED_SOCKETS);
}

// Costs that fall from level to level and loads that come and go at random: the policy holds the limits wherever the
// levels allow it, but for the seconds that it takes to confirm and to try lower ones, and does not flap.
TEST_CASE("random targets stay within the limits where their costs allow it, and change their levels rarely") {
  const auto seed = GENERATE(range(1U, 41U));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto draw = [&random](double from, double to) { return std::uniform_real_distribution(from, to)(random); };
  constexpr int kSeconds = 3'600;
  constexpr std::size_t kTargets = 12;
  World world;
  world.limits.overhead = Percent{100};
  world.limits.machine_overhead = Percent{200};
  struct Life {
    std::array<double, TACHO_SHED_LEVELS> cost{};  // ns at full load
    double load = 0;
    int until = 0;
  };
  std::vector<Life> lives(kTargets);
  world.targets.resize(kTargets);
  for (Life& life : lives) {
    life.cost[0] = draw(1e6, 40e6);
    for (std::size_t level = 1; level < life.cost.size(); ++level) {
      life.cost.at(level) = life.cost.at(level - 1) * (draw(0, 1) < 0.3 ? 1.0 : draw(0.5, 0.95));
    }
  }
  std::vector<int> changes(kTargets);
  std::vector<int> loads(kTargets);
  std::vector<int> above(kTargets);
  int machine_above = 0;
  for (int second = 0; second < kSeconds; ++second) {
    double all = 0;
    double least = 0;
    for (std::size_t i = 0; i < kTargets; ++i) {
      Life& life = lives[i];
      if (second >= life.until) {
        life.load = draw(0, 1) < 0.3 ? 0 : draw(0.05, 1);
        life.until = second + static_cast<int>(draw(20, 400));
        ++loads[i];
      }
      Model& target = world.targets[i];
      for (std::size_t level = 0; level < life.cost.size(); ++level) {
        target.cost_ns.at(level) = static_cast<std::uint64_t>(life.cost.at(level) * life.load * draw(0.95, 1.05));
      }
      // Equal costs are to stay so, for they say that the level does not help.
      for (std::size_t level = 1; level < life.cost.size(); ++level) {
        if (life.cost.at(level) == life.cost.at(level - 1)) {
          target.cost_ns.at(level) = target.cost_ns.at(level - 1);
        }
      }
      target.cpu_ns = kSecondNs;
      all += static_cast<double>(target.cost());
      least += life.cost.back() * life.load * 1.05;
      const bool possible = life.cost.back() * life.load * 1.05 <= 10e6;
      above[i] += possible && target.cost() > 10 * kMs ? 1 : 0;
    }
    machine_above += least <= 80e6 && all > 80e6 ? 1 : 0;
    std::vector<ShedLevel> before;
    for (const Model& target : world.targets) {
      before.push_back(target.shed.level());
    }
    world.pass();
    for (std::size_t i = 0; i < kTargets; ++i) {
      changes[i] += world.level(i) != before[i] ? 1 : 0;
    }
  }
  for (std::size_t i = 0; i < kTargets; ++i) {
    CAPTURE(i, loads[i], changes[i], above[i]);
    // Of each load at most five levels up, and a few tries to go back.
    CHECK(changes[i] <= 10 * loads[i]);
    CHECK(above[i] <= 10 * loads[i]);
  }
  int all_loads = 0;
  for (const int each : loads) {
    all_loads += each;
  }
  CAPTURE(all_loads);
  CHECK(machine_above <= 4 * all_loads);
}
