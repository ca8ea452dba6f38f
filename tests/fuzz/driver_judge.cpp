#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "fuzz/driver.h"

// What was counted, against what must have been.

namespace tacho::fuzz {

Numbers Driver::numbers(Target target) {
  Numbers counted = read_numbers(tacho_->page(), cgroups_.at(static_cast<std::size_t>(target)).path());
  for (const auto& [name, before] : carried_.at(static_cast<std::size_t>(target))) {
    counted[name] += before;
  }
  return counted;
}

std::string Driver::in_flight() {
  std::string text;
  for (const Target target : kTargets) {
    const double before = before_.at(static_cast<std::size_t>(target)).at(kInFlight);
    const double now = numbers(target).at(kInFlight);
    if (now != before) {
      text += fmt::format("{}: in flight for good: {} before, {} now\n", name_of(target), before, now);
    }
  }
  return text;
}

bool Driver::is_multiplexed(Target target) {
  const kernel_test::Labels labels{{"cgroup", cgroups_.at(static_cast<std::size_t>(target)).path()},
                                   {"condition", "multiplexed"}};
  return tacho_->wait_for([&] { return tacho_->page().value("tacho_target_condition", labels) == 1; },
                          std::chrono::seconds(4));
}

std::string Driver::differences(const Model& model) {
  std::string text;
  for (const Target target : kTargets) {
    const Numbers& was = before_.at(static_cast<std::size_t>(target));
    for (const auto& [name, value] : numbers(target)) {
      const auto found = model.of(target).find(name);
      const Bounds wanted = found == model.of(target).end() ? Bounds{} : found->second;
      const double counted = value - was.at(name);
      if (!wanted.admit(counted)) {
        text += wanted.least == wanted.most
                    ? fmt::format("{}: {}: {} wanted, {} counted\n", name_of(target), name, wanted.least, counted)
                    : fmt::format("{}: {}: {:.6f} to {:.6f} wanted, {:.6f} counted\n", name_of(target), name,
                                  wanted.least, wanted.most, counted);
      }
    }
  }
  return text;
}

}  // namespace tacho::fuzz
