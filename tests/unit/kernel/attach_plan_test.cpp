#include "kernel/attach_plan.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

using tacho::kernel::Alternative;
using tacho::kernel::AttachPlan;
using tacho::kernel::Hook;

namespace {

using Names = std::vector<std::string_view>;

constexpr std::array<std::string_view, 2> kClassic{"classic_exit", "classic_enter"};
constexpr std::array<std::string_view, 2> kRaw{"raw_exit", "raw_enter"};
constexpr std::array<std::string_view, 1> kThreads{"thread_exit"};
constexpr std::array kCallWays{Alternative{"tracepoint", kClassic}, Alternative{"raw_tracepoint", kRaw}};
constexpr std::array kThreadWays{Alternative{"tp_btf", kThreads}};
constexpr std::array kHooks{Hook{"threads", kThreadWays}, Hook{"calls", kCallWays}};

/// "hook=method" of every hook, with the error if there is one.
std::vector<std::string> brief(const AttachPlan& plan) {
  std::vector<std::string> out;
  for (const auto& state : plan.states()) {
    out.push_back(std::string(state.hook) + "=" + std::string(state.method) +
                  (state.error.empty() ? "" : " (" + state.error + ")"));
  }
  return out;
}

using Brief = std::vector<std::string>;

}  // namespace

TEST_CASE("the first way of each hook is taken, its programs in their order") {
  const AttachPlan plan(kHooks, "");
  CHECK(plan.programs() == Names{"thread_exit", "classic_exit", "classic_enter"});
  CHECK(plan.uses("classic_enter"));
  CHECK_FALSE(plan.uses("raw_enter"));
  CHECK_FALSE(plan.uses(""));
  CHECK(brief(plan) == Brief{"threads=tp_btf", "calls=tracepoint"});
  CHECK(plan.states()[0].attached());
}

TEST_CASE("a hook's programs are those of its way in use") {
  AttachPlan plan(kHooks, "");
  CHECK(plan.programs_of("calls") == Names{"classic_exit", "classic_enter"});
  plan.reject("classic_enter", "no tracefs");
  CHECK(plan.programs_of("calls") == Names{"raw_exit", "raw_enter"});
  plan.reject("raw_enter", "refused");
  CHECK(plan.programs_of("calls").empty());
  CHECK(plan.programs_of("of another part").empty());
}

TEST_CASE("a program that fails takes its whole way out of its own hook only") {
  AttachPlan plan(kHooks, "");
  plan.reject("classic_enter", "no tracefs");
  CHECK(plan.programs() == Names{"thread_exit", "raw_exit", "raw_enter"});
  CHECK_FALSE(plan.uses("classic_exit"));
  CHECK(brief(plan) == Brief{"threads=tp_btf", "calls=raw_tracepoint (tracepoint: no tracefs)"});
}

TEST_CASE("a hook of which every way failed is none and tells all reasons") {
  AttachPlan plan(kHooks, "");
  plan.reject("classic_exit", "no tracefs");
  plan.reject("raw_exit", "refused");
  CHECK(plan.programs() == Names{"thread_exit"});
  CHECK(brief(plan) == Brief{"threads=tp_btf", "calls=none (tracepoint: no tracefs; raw_tracepoint: refused)"});
  CHECK_FALSE(plan.states()[1].attached());
  plan.reject("thread_exit", "refused");
  CHECK(plan.programs().empty());
}

TEST_CASE("rejecting a program that is not in use changes nothing") {
  AttachPlan plan(kHooks, "");
  const Brief before = brief(plan);
  plan.reject("raw_enter", "refused");
  plan.reject("unheard of", "refused");
  CHECK(brief(plan) == before);
}

TEST_CASE("a forced method is the only one tried where a hook offers it") {
  AttachPlan plan(kHooks, "raw_tracepoint");
  CHECK(plan.programs() == Names{"thread_exit", "raw_exit", "raw_enter"});
  CHECK(brief(plan) == Brief{"threads=tp_btf", "calls=raw_tracepoint"});
  plan.reject("raw_enter", "refused");
  CHECK(brief(plan) == Brief{"threads=tp_btf", "calls=none (raw_tracepoint: refused)"});
}

TEST_CASE("what comes after a forced method is not fallen back to") {
  AttachPlan plan(kHooks, "tracepoint");
  plan.reject("classic_exit", "no tracefs");
  CHECK_FALSE(plan.uses("raw_exit"));
  CHECK(brief(plan) == Brief{"threads=tp_btf", "calls=none (tracepoint: no tracefs)"});
}

TEST_CASE("a forced method that no hook offers leaves the hooks as they are") {
  const AttachPlan plan(kHooks, "fentry");
  CHECK(brief(plan) == Brief{"threads=tp_btf", "calls=tracepoint"});
}

TEST_CASE("a program that serves two hooks fails for both") {
  constexpr std::array hooks{Hook{"one", kThreadWays}, Hook{"two", kThreadWays}};
  AttachPlan plan(hooks, "");
  plan.reject("thread_exit", "refused");
  CHECK(brief(plan) == Brief{"one=none (tp_btf: refused)", "two=none (tp_btf: refused)"});
}

TEST_CASE("a hook without any way is none from the start") {
  constexpr std::array hooks{Hook{"nothing", {}}};
  const AttachPlan plan(hooks, "");
  CHECK(plan.programs().empty());
  CHECK(brief(plan) == Brief{"nothing=none"});
}
