#pragma once

#include <time.h>

#include <cstdint>

namespace tacho {

/// The clock of bpf_ktime_get_ns().
inline std::int64_t kernel_now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace tacho
