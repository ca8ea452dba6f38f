#include "web/regulars.h"

#include <catch2/catch.hpp>

namespace tacho::web {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""min;

constexpr Regulars::Time kStart{1000s};

std::string stranger(int number) {
  return "stranger " + std::to_string(number);
}

TEST_CASE("Who was served is known, and strangers make each other forgotten") {
  Regulars regulars;
  CHECK_FALSE(regulars.knows(stranger(0)));
  for (int i = 0; i < 1000; ++i) {
    regulars.served(stranger(i), kStart + i * 1ms);
    CHECK(regulars.knows(stranger(i)));
  }
  CHECK_FALSE(regulars.knows(stranger(0)));
}

TEST_CASE("Who comes again is pushed out by no number of strangers") {
  Regulars regulars;
  for (int i = 0; i < 3; ++i) {
    regulars.served("reader", kStart + i * 15s);
  }
  for (int i = 0; i < 10'000; ++i) {
    regulars.served(stranger(i), kStart + 60s + i * 1ms);
  }
  CHECK(regulars.knows("reader"));
}

TEST_CASE("A burst makes no regular") {
  Regulars regulars;
  for (int i = 0; i < 100; ++i) {
    regulars.served("burst", kStart + i * 1ms);
  }
  for (int i = 0; i < 1000; ++i) {
    regulars.served(stranger(i), kStart + 1s + i * 1ms);
  }
  CHECK_FALSE(regulars.knows("burst"));
}

TEST_CASE("Regulars keep their places from those who would be, and lose them where they stay away") {
  Regulars regulars;
  const auto come = [&](const std::string& who, Regulars::Time first) {
    for (int i = 0; i < 3; ++i) {
      regulars.served(who, first + i * 2s);
    }
  };
  for (int i = 0; i < static_cast<int>(Regulars::kMost); ++i) {
    come(stranger(i), kStart);
  }
  come("late", kStart + 10s);
  CHECK_FALSE(regulars.knows("late"));
  CHECK(regulars.knows(stranger(0)));
  come("later", kStart + 11min);
  CHECK(regulars.knows("later"));
  CHECK_FALSE(regulars.knows(stranger(0)));
}

}  // namespace
}  // namespace tacho::web
