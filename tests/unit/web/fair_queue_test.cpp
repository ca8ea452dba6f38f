#include "web/fair_queue.h"

#include <catch2/catch.hpp>
#include <string>

namespace tacho::web {
namespace {

constexpr std::size_t kPlaces = 64;

TEST_CASE("Sources take turns, and each has its oldest served first") {
  FairQueue<int> queue;
  for (int i = 0; i < 4; ++i) {
    queue.push("many", i);
  }
  queue.push("one", 10);
  queue.push("two", 20);
  queue.push("two", 21);
  std::string order;
  while (const auto next = queue.pop()) {
    order += std::to_string(*next) + ' ';
  }
  CHECK(order == "0 10 20 1 21 2 3 ");
  CHECK(queue.size() == 0);
}

TEST_CASE("Those who are known have three of four turns before any number of strangers") {
  FairQueue<int> queue;
  for (int i = 0; i < 100; ++i) {
    queue.push("stranger " + std::to_string(i), i);
  }
  for (int i = 0; i < 4; ++i) {
    queue.push("known", 1000 + i, true);
  }
  int turns = 0;
  for (int known = 0; known < 4; ++turns) {
    known += *queue.pop() >= 1000 ? 1 : 0;
  }
  CHECK(turns <= 6);
  CHECK(queue.size() == 104U - static_cast<unsigned>(turns));
}

TEST_CASE("Where all have as many in line, the last stranger loses, whatever it is called") {
  FairQueue<int> queue;
  queue.push("a known one", 0, true);
  for (int i = 1; i <= 3; ++i) {
    queue.push(std::string(1, static_cast<char>('z' - i)), i);
  }
  queue.push("a known one", 4, true);
  CHECK(queue.pop_newest_of_largest(kPlaces) == 3);
  CHECK(queue.pop_newest_of_largest(kPlaces) == 2);
  CHECK(queue.pop_newest_of_largest(kPlaces) == 1);
  CHECK(queue.pop_newest_of_largest(kPlaces) == 4);
}

TEST_CASE("Who is known and has too many in line loses, too") {
  FairQueue<int> queue;
  queue.push("stranger", 1);
  for (int i = 0; i < 40; ++i) {
    queue.push("known", 100 + i, true);
  }
  CHECK(queue.pop_newest_of_largest(kPlaces) == 139);
}

TEST_CASE("Where known ones fill the line, a stranger finds a place") {
  constexpr int kSources = 5;
  FairQueue<int> queue;
  for (std::size_t i = 0; i < kPlaces; ++i) {
    const int source = static_cast<int>(i) % kSources;
    queue.push("known " + std::to_string(source), source, true);
  }
  queue.push("stranger", kSources);
  for (int i = 0; i < 100; ++i) {
    CHECK(queue.pop_newest_of_largest(kPlaces) != kSources);
    queue.push("known " + std::to_string(i % kSources), i % kSources, true);
  }
}

TEST_CASE("Who has most in line loses its newest") {
  FairQueue<int> queue;
  CHECK_FALSE(queue.pop_newest_of_largest(kPlaces));
  queue.push("one", 10);
  for (int i = 0; i < 3; ++i) {
    queue.push("many", i);
  }
  CHECK(queue.pop_newest_of_largest(kPlaces) == 2);
  CHECK(queue.size() == 3);
  CHECK(queue.pop() == 0);
  CHECK(queue.pop() == 10);
  CHECK(queue.pop() == 1);
  CHECK_FALSE(queue.pop());
}

}  // namespace
}  // namespace tacho::web
