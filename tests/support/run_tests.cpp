#include "support/run_tests.h"

#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

namespace tacho::test {

int run_tests(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}

}  // namespace tacho::test
