#include "kernel/skipped_events.h"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

using tacho::kernel::ProgramStatistics;
using tacho::kernel::skipped_events;

namespace {

/// All so far, of an object that is read now and then.
class Object {
 public:
  std::uint64_t update(std::vector<ProgramStatistics> now) {
    total_ += skipped_events(before_, now);
    before_ = std::move(now);
    return total_;
  }

 private:
  std::vector<ProgramStatistics> before_;
  std::uint64_t total_ = 0;
};

ProgramStatistics missed(const char* program, std::uint64_t misses) {
  return {.program = program, .misses = misses};
}

}  // namespace

TEST_CASE("runs that the kernel skipped are events that nobody has seen") {
  Object skipped;
  CHECK(skipped.update({}) == 0);
  CHECK(skipped.update({missed("poll_enter", 3), missed("poll_exit", 1)}) == 4);
  CHECK(skipped.update({missed("poll_enter", 3), missed("poll_exit", 1)}) == 4);
  CHECK(skipped.update({missed("poll_enter", 5), missed("poll_exit", 1)}) == 6);
}

TEST_CASE("of a program and its second one, only what both were kept from can be lost") {
  Object skipped;
  CHECK(skipped.update({missed("socket_send", 7), missed("socket_send_again", 0)}) == 0);
  CHECK(skipped.update({missed("socket_send", 7), missed("socket_send_again", 9)}) == 0);
  CHECK(skipped.update({missed("socket_send", 10), missed("socket_send_again", 11)}) == 2);
  CHECK(skipped.update({missed("socket_send_again", 14), missed("socket_send", 11)}) == 3);
}

TEST_CASE("what an object has lost never falls, also when its programs are others") {
  Object skipped;
  CHECK(skipped.update({missed("a", 5)}) == 5);
  CHECK(skipped.update({missed("a", 2)}) == 5);
  CHECK(skipped.update({missed("a", 3)}) == 6);
}
