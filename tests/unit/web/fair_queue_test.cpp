#include "web/fair_queue.h"

#include <catch2/catch.hpp>
#include <string>

namespace tacho::web {
namespace {

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

TEST_CASE("Who has most in line loses its newest") {
  FairQueue<int> queue;
  CHECK_FALSE(queue.pop_newest_of_largest());
  queue.push("one", 10);
  for (int i = 0; i < 3; ++i) {
    queue.push("many", i);
  }
  CHECK(queue.pop_newest_of_largest() == 2);
  CHECK(queue.size() == 3);
  CHECK(queue.pop() == 0);
  CHECK(queue.pop() == 10);
  CHECK(queue.pop() == 1);
  CHECK_FALSE(queue.pop());
}

}  // namespace
}  // namespace tacho::web
