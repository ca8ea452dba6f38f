#include "process/shared_state.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>

using tacho::Liveness;
using tacho::process::SharedState;
using namespace std::chrono_literals;

namespace {

SharedState& made() {
  auto state = SharedState::create();
  REQUIRE(state);
  return **state;
}

}  // namespace

TEST_CASE("what hangs in the collector is known to who serves, and grows older there") {
  SharedState& state = made();
  const auto now = SharedState::Clock::now();
  CHECK_FALSE(state.stuck(now));
  state.beat(Liveness::Stuck{.what = "the main loop", .time = 12s}, now);
  const auto stuck = state.stuck(now + 3s);
  REQUIRE(stuck);
  CHECK(stuck->what == "the main loop");
  CHECK(stuck->time == 15s);
  state.beat(std::nullopt, now + 4s);
  CHECK_FALSE(state.stuck(now + 4s));
}

TEST_CASE("a collector that gives no sign of life is what hangs") {
  SharedState& state = made();
  const auto now = SharedState::Clock::now();
  state.beat(std::nullopt, now);
  CHECK_FALSE(state.stuck(now + Liveness::kPatience - 1ms));
  const auto stuck = state.stuck(now + Liveness::kPatience);
  REQUIRE(stuck);
  CHECK(stuck->what == "the collector");
}

TEST_CASE("a text is read whole or not at all, and cut where it is long") {
  SharedState& state = made();
  state.set_blindness(std::string(1000, 'x'));
  CHECK(state.blindness() == std::string(255, 'x'));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int round = 0; !stop; ++round) {
      state.set_blindness(std::string(100, round % 2 == 0 ? 'a' : 'b'));
    }
  });
  unsigned mixed = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::string text = state.blindness();
    mixed += !text.empty() && text.find_first_not_of(text.front()) != std::string::npos ? 1U : 0U;
  }
  stop = true;
  writer.join();
  CHECK(mixed == 0);
}
