#pragma once

#include <string>

namespace tacho::kernel_test {

/// Exit code of a test program that cannot run here.
inline constexpr int kSkipped = 77;

/// What stands in the way of loading programs and making cgroups; empty if nothing does.
std::string obstacle();

}  // namespace tacho::kernel_test
