// What a plan of the targets costs: bench_targets [--benchmark_filter=…]. Each is to grow with the number of targets,
// not with its square.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "targets/target_table.h"

namespace {

using namespace tacho;
using targets::DesiredTarget;
using targets::Target;
using targets::TargetTable;

/// Targets have no blocks, and none has answered yet.
class Observer final : public targets::TargetObserver {
 public:
  Result<void> target_added(const Target& /*target*/) override { return {}; }
  void target_removed(const Target& /*target*/) override {}
  [[nodiscard]] bool has_answered(const Target& /*target*/) const override { return false; }
  Result<void> targets_changed() override { return {}; }
  void targets_known() override {}
};

std::vector<DesiredTarget> containers(std::int64_t count) {
  std::vector<DesiredTarget> all;
  for (std::int64_t i = 0; i < count; ++i) {
    DesiredTarget target;
    target.name = "container-" + std::to_string(i);
    target.labels = {
        {"target", target.name}, {"namespace", "production"}, {"pod", "web-7d4f9c6b5d-" + std::to_string(i)}};
    target.cgroups = {static_cast<std::uint64_t>(1000 + i)};
    target.rank = targets::Rank::container;
    all.push_back(std::move(target));
  }
  return all;
}

void plan(benchmark::State& state, std::int64_t places) {
  const auto wanted = containers(state.range(0));
  const targets::Time now{};
  Observer observer;
  TargetTable table(static_cast<std::size_t>(places));
  table.apply(wanted, now, observer);
  for (auto _ : state) {
    auto again = wanted;
    table.apply(std::move(again), now, observer);
    benchmark::DoNotOptimize(table.cgroups());
  }
  state.SetComplexityN(state.range(0));
}

void first_plan(benchmark::State& state) {
  const auto wanted = containers(state.range(0));
  Observer observer;
  for (auto _ : state) {
    TargetTable table(static_cast<std::size_t>(state.range(0)));
    auto all = wanted;
    table.apply(std::move(all), {}, observer);
  }
  state.SetComplexityN(state.range(0));
}

void plan_again(benchmark::State& state) {
  plan(state, state.range(0));
}

/// Half of them have no place.
void plan_with_too_many(benchmark::State& state) {
  plan(state, state.range(0) / 2);
}

void everybody_goes(benchmark::State& state) {
  const auto wanted = containers(state.range(0));
  Observer observer;
  for (auto _ : state) {
    TargetTable table(static_cast<std::size_t>(state.range(0)));
    auto all = wanted;
    table.apply(std::move(all), {}, observer);
    table.apply({}, targets::Time(std::chrono::seconds(1)), observer);
    table.release_ended(targets::Time(std::chrono::seconds(2)), targets::Time(std::chrono::seconds(3)), observer);
  }
  state.SetComplexityN(state.range(0));
}

BENCHMARK(first_plan)->Arg(1000)->Arg(5000)->Unit(benchmark::kMillisecond)->Complexity();
BENCHMARK(plan_again)->Arg(1000)->Arg(5000)->Unit(benchmark::kMillisecond)->Complexity();
BENCHMARK(plan_with_too_many)->Arg(1000)->Arg(5000)->Unit(benchmark::kMillisecond)->Complexity();
BENCHMARK(everybody_goes)->Arg(1000)->Arg(5000)->Unit(benchmark::kMillisecond)->Complexity();

}  // namespace
