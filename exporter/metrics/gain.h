#pragma once

#include <cstdint>

namespace tacho::metrics {

constexpr double kNanosecondsPerSecond = 1e9;

/// The growth of a counter; nothing where it went back.
constexpr std::uint64_t gain(std::uint64_t older, std::uint64_t newer) {
  return newer > older ? newer - older : 0;
}

}  // namespace tacho::metrics
