#pragma once

#include <set>
#include <string>
#include <vector>

#include "targets/target_table.h"

namespace tacho::targets::test {

using std::chrono::seconds;

/// Writes down what happens to targets; fails for the names it is told to.
class Recorder final : public TargetObserver {
 public:
  std::vector<std::string> events;  ///< "+name" and "-name"
  std::set<std::string> refused;
  std::set<std::string> busy;  ///< names of targets that answer requests

  Result<void> target_added(const Target& target) override {
    if (refused.contains(target.wanted.name)) {
      return fail("no memory", ENOMEM);
    }
    events.push_back("+" + target.wanted.name);
    return {};
  }
  void target_removed(const Target& target) override { events.push_back("-" + target.wanted.name); }
  [[nodiscard]] bool has_answered(const Target& target) const override { return busy.contains(target.wanted.name); }
  Result<void> targets_changed() override { return {}; }
  void targets_known() override {}
};

inline Time at(int second) {
  return Time(seconds(1'000 + second));
}

/// What ended before has been read by everybody, or by nobody.
inline constexpr Time kSeen = Time::max();
inline constexpr Time kUnseen = Time::min();

/// A target called `name` with one cgroup.
inline DesiredTarget wanted(const std::string& name, std::uint64_t cgroup) {
  return {name, {{"target", name}}, {cgroup}, {}, {}, {}};
}

/// "name#index", an ended one in brackets.
inline std::vector<std::string> brief(const TargetTable& table) {
  std::vector<std::string> lines;
  for (const Target* target : table.all()) {
    if (target->state == Target::State::resting) {
      continue;
    }
    const std::string text = target->wanted.name + "#" + std::to_string(target->ref.index);
    lines.push_back(target->state == Target::State::live ? text : "(" + text + ")");
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace tacho::targets::test
