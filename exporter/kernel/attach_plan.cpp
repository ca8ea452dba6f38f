#include "kernel/attach_plan.h"

#include <algorithm>
#include <iterator>

namespace tacho::kernel {

const Alternative* AttachPlan::Choice::current() const {
  return alternative < hook->alternatives.size() ? &hook->alternatives[alternative] : nullptr;
}

std::vector<std::string_view> AttachPlan::Choice::programs() const {
  std::vector<std::string_view> all;
  if (const Alternative* used = current()) {
    all.assign(used->programs.begin(), used->programs.end());
    std::ranges::copy_if(used->optional, std::back_inserter(all), [this](std::string_view program) {
      return std::ranges::find(left_out, program) == left_out.end();
    });
  }
  return all;
}

AttachPlan::AttachPlan(std::span<const Hook> hooks, std::string_view forced) : forced_(forced) {
  for (const Hook& hook : hooks) {
    choices_.push_back({&hook, 0, {}, {}});
    skip_unwanted(choices_.back());
  }
}

bool AttachPlan::is_forced(const Alternative& alternative) const {
  return alternative.method == forced_ || (forced_ == "tracepoint" && alternative.method == "tp_btf");
}

bool AttachPlan::offers_forced(const Hook& hook) const {
  return std::ranges::any_of(hook.alternatives, [this](const Alternative& a) { return is_forced(a); });
}

bool AttachPlan::offers_forced() const {
  return forced_.empty() ||
         std::ranges::any_of(choices_, [this](const Choice& choice) { return offers_forced(*choice.hook); });
}

void AttachPlan::skip_unwanted(Choice& choice) const {
  if (forced_.empty() || !offers_forced(*choice.hook)) {
    return;  // A hook that knows only other ways keeps them.
  }
  while (choice.current() != nullptr && !is_forced(*choice.current())) {
    ++choice.alternative;
  }
}

bool AttachPlan::uses(std::string_view program) const {
  const auto all = programs();
  return std::ranges::find(all, program) != all.end();
}

std::vector<std::string_view> AttachPlan::programs() const {
  std::vector<std::string_view> all;
  for (const Choice& choice : choices_) {
    const auto used = choice.programs();
    all.insert(all.end(), used.begin(), used.end());
  }
  return all;
}

std::vector<std::string_view> AttachPlan::programs_of(std::string_view hook) const {
  const auto found = std::ranges::find_if(choices_, [hook](const Choice& choice) { return choice.hook->name == hook; });
  return found != choices_.end() ? found->programs() : std::vector<std::string_view>{};
}

std::vector<std::string_view> AttachPlan::all_programs() const {
  std::vector<std::string_view> all;
  for (const Choice& choice : choices_) {
    for (const Alternative& alternative : choice.hook->alternatives) {
      all.insert(all.end(), alternative.programs.begin(), alternative.programs.end());
      all.insert(all.end(), alternative.optional.begin(), alternative.optional.end());
    }
  }
  return all;
}

bool AttachPlan::reject(std::string_view program, const std::string& why) {
  for (Choice& choice : choices_) {
    const Alternative* current = choice.current();
    const auto used = choice.programs();
    if (current == nullptr || std::ranges::find(used, program) == used.end()) {
      continue;
    }
    const auto left_out = std::ranges::find(current->optional, program);
    if (left_out != current->optional.end()) {
      choice.left_out.push_back(*left_out);
      return true;
    }
    if (!choice.error.empty()) {
      choice.error += "; ";
    }
    choice.error += std::string(current->method) + ": " + why;
    ++choice.alternative;
    skip_unwanted(choice);
  }
  return false;
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
