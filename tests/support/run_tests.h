#pragma once

namespace tacho::test {

/// Runs the test cases of this program, as Catch2's arguments say. Here so that only one file compiles all of Catch2.
/// @return exit status
int run_tests(int argc, char** argv);

}  // namespace tacho::test
