#include "process/shared_state.h"

#include <sys/mman.h>

#include <new>

namespace tacho::process {
namespace {

std::int64_t nanoseconds(SharedState::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

constexpr int kAttempts = 8;  // to read a text that is being written

}  // namespace

Result<SharedState*> SharedState::create() {
  void* const memory = ::mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return fail_errno("cannot make shared memory");
  }
  auto* const state = new (memory) SharedState;
  state->beat({});
  return state;
}

void SharedState::put(Text& text, std::string_view value) {
  value = value.substr(0, kTextSize - 1);
  ++text.version;
  for (std::size_t at = 0; at < value.size(); ++at) {
    text.bytes.at(at) = value[at];
  }
  text.bytes.at(value.size()) = '\0';
  ++text.version;
}

std::string SharedState::get(const Text& text) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint32_t version = text.version;
    std::string copy;
    for (const auto& byte : text.bytes) {
      const char c = byte;
      if (c == '\0') {
        break;
      }
      copy += c;
    }
    if (version % 2 == 0 && version == text.version) {
      return copy;
    }
  }
  return {};
}

void SharedState::beat(const std::optional<Liveness::Stuck>& stuck, Clock::time_point now) {
  beat_ns_ = nanoseconds(now);
  if (stuck) {
    put(stuck_, stuck->what);
    stuck_since_ns_ = nanoseconds(now - stuck->time);
  } else {
    stuck_since_ns_ = 0;
  }
}

std::optional<Liveness::Stuck> SharedState::stuck(Clock::time_point now) const {
  const std::int64_t since = stuck_since_ns_;
  const std::int64_t beat = beat_ns_;
  const auto age = [now](std::int64_t then) { return std::chrono::nanoseconds(nanoseconds(now) - then); };
  if (since != 0) {
    return Liveness::Stuck{.what = get(stuck_), .time = age(since)};
  }
  if (age(beat) >= Liveness::kPatience) {
    return Liveness::Stuck{.what = "the collector", .time = age(beat)};
  }
  return std::nullopt;
}

}  // namespace tacho::process
