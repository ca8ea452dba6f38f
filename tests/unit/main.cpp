#include "support/run_tests.h"

int main(int argc, char** argv) {
  return tacho::test::run_tests(argc, argv);
}
