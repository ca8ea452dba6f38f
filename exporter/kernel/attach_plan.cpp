#include "kernel/attach_plan.h"

#include <algorithm>

namespace tacho::kernel {

const Alternative* AttachPlan::Choice::current() const {
  return alternative < hook->alternatives.size() ? &hook->alternatives[alternative] : nullptr;
}

AttachPlan::AttachPlan(std::span<const Hook> hooks, std::string_view forced) : forced_(forced) {
  for (const Hook& hook : hooks) {
    choices_.push_back({&hook, 0, {}});
    skip_unwanted(choices_.back());
  }
}

void AttachPlan::skip_unwanted(Choice& choice) const {
  if (forced_.empty()) {
    return;
  }
  const bool offered =
      std::ranges::any_of(choice.hook->alternatives, [this](const Alternative& a) { return a.method == forced_; });
  if (!offered) {
    return;  // A hook that knows only one way keeps it.
  }
  while (choice.current() != nullptr && choice.current()->method != forced_) {
    ++choice.alternative;
  }
}

bool AttachPlan::uses(std::string_view program) const {
  return std::ranges::any_of(choices_, [program](const Choice& choice) {
    const Alternative* current = choice.current();
    return current != nullptr && std::ranges::find(current->programs, program) != current->programs.end();
  });
}

std::vector<std::string_view> AttachPlan::programs() const {
  std::vector<std::string_view> all;
  for (const Choice& choice : choices_) {
    if (const Alternative* current = choice.current()) {
      all.insert(all.end(), current->programs.begin(), current->programs.end());
    }
  }
  return all;
}

void AttachPlan::reject(std::string_view program, const std::string& why) {
  for (Choice& choice : choices_) {
    const Alternative* current = choice.current();
    if (current == nullptr || std::ranges::find(current->programs, program) == current->programs.end()) {
      continue;
    }
    if (!choice.error.empty()) {
      choice.error += "; ";
    }
    choice.error += std::string(current->method) + ": " + why;
    ++choice.alternative;
    skip_unwanted(choice);
  }
}

std::vector<HookState> AttachPlan::states() const {
  std::vector<HookState> states;
  for (const Choice& choice : choices_) {
    const Alternative* current = choice.current();
    states.push_back({choice.hook->name, current != nullptr ? current->method : "none", choice.error});
  }
  return states;
}

}  // namespace tacho::kernel
