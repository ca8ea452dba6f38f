#include "kernel/trials.h"

#include <catch2/catch.hpp>
#include <cerrno>

using tacho::fail_errno;
using tacho::Result;
using tacho::kernel::Trials;

TEST_CASE("what the kernel refuses is tried once, each by itself") {
  Trials trials;
  int tries = 0;
  const auto refuse = [&tries]() -> Result<void> {
    ++tries;
    return fail_errno("no", EPERM);
  };
  CHECK(trials.refused("one", refuse) == "no: Operation not permitted");
  CHECK(trials.refused("one", refuse) == "no: Operation not permitted");
  CHECK(tries == 1);
  CHECK(trials.refused("two", [] { return Result<void>(); }).empty());
  CHECK(trials.refused("two", refuse).empty());
  CHECK(tries == 1);
}

TEST_CASE("what passes is no verdict") {
  const int passing = GENERATE(ENOMEM, EINTR, EAGAIN, EMFILE, ENFILE);
  Trials trials;
  CHECK(trials.refused("one", [passing]() -> Result<void> { return fail_errno("not now", passing); }).empty());
  CHECK(trials.refused("one", []() -> Result<void> { return fail_errno("never", EPERM); }) ==
        "never: Operation not permitted");
}
