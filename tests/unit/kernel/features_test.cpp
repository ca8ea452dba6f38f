#include "kernel/features.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

namespace kernel = tacho::kernel;

TEST_CASE("a BTF file that is not there is a missing prerequisite that names the file and the remedy") {
  const auto missing = kernel::missing_prerequisites("/nonexistent/btf");
  const auto about_btf = std::ranges::find_if(
      missing, [](const std::string& line) { return line.find("/nonexistent/btf") != std::string::npos; });
  REQUIRE(about_btf != missing.end());
  CHECK(about_btf->find("--btf.path") != std::string::npos);
}

TEST_CASE("there are at least as many possible CPUs as online ones") {
  CHECK(kernel::possible_cpus() >= static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN)));
}
