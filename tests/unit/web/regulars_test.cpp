#include "web/regulars.h"

#include <catch2/catch.hpp>
#include <limits>
#include <memory>
#include <string>

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

TEST_CASE("Regulars outlive the process that met them") {
  const auto memory = std::make_unique<RegularsMemory>();
  {
    Regulars regulars(memory.get(), kStart);
    regulars.served("2001:db8:1234:5678::", kStart + 2s);
    for (int i = 0; i < 3; ++i) {
      regulars.served("reader", kStart + i * 15s);
    }
    regulars.served("uid 4294967294", kStart + 31s);
  }
  Regulars next(memory.get(), kStart + 60s);
  CHECK(next.knows("reader"));
  CHECK(next.knows("2001:db8:1234:5678::"));
  CHECK(next.knows("uid 4294967294"));
  CHECK_FALSE(next.knows(""));
  // Of its visits, too, nothing is forgotten.
  for (int i = 0; i < 1000; ++i) {
    next.served(stranger(i), kStart + 60s + i * 1ms);
  }
  CHECK(next.knows("reader"));
  CHECK_FALSE(Regulars(memory.get(), kStart + 70s).knows("uid 4294967294"));
}

TEST_CASE("What a hostile process leaves makes nobody more than a regular") {
  const auto memory = std::make_unique<RegularsMemory>();
  for (std::size_t i = 0; i < memory->entries.size(); ++i) {
    RegularsMemory::Entry& entry = memory->entries.at(i);
    entry.source.fill(i % 3 == 0 ? '\0' : 'x');
    entry.source.back() = i % 3 == 1 ? 'x' : '\0';
    entry.source.front() = i % 3 == 2 ? static_cast<char>('!' + i % 64) : entry.source.front();
    entry.visits = ~0U;
    entry.last_ns = i % 2 == 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
  }
  Regulars regulars(memory.get(), kStart);
  CHECK_FALSE(regulars.knows(""));
  CHECK_FALSE(regulars.knows(std::string(48, 'x')));
  // They are forgotten like others: none of them was here after `kStart`.
  for (unsigned i = 0; i < 200; ++i) {
    regulars.served("reader", kStart + 11min + i * 2s);
    regulars.served(stranger(static_cast<int>(i)), kStart + 11min + i * 2s);
  }
  CHECK(regulars.knows("reader"));
  CHECK(regulars.knows(stranger(199)));
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
