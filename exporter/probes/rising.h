#pragma once

#include <algorithm>
#include <atomic>

namespace tacho::probes {

/// The largest value that any thread has read so far: what is exported never falls, for any reader.
template <class Number>
class Rising {
 public:
  /// @return the largest value so far, this one included
  Number raise(Number value) {
    Number largest = value_.load(std::memory_order_relaxed);
    while (largest < value && !value_.compare_exchange_weak(largest, value, std::memory_order_relaxed)) {
    }
    return std::max(largest, value);
  }

 private:
  std::atomic<Number> value_{};
};

}  // namespace tacho::probes
