#pragma once

#include <sched.h>

#include <cstdint>

namespace tacho::probes {

/// A load that the compiler neither tears nor moves before earlier loads; the other side is a BPF program.
inline std::uint64_t load(const std::uint64_t& place) {
  return __atomic_load_n(&place, __ATOMIC_ACQUIRE);
}
inline std::uint64_t load(const unsigned long long& place) {
  return __atomic_load_n(&place, __ATOMIC_ACQUIRE);
}
inline std::int64_t load(const long long& place) {
  return __atomic_load_n(&place, __ATOMIC_ACQUIRE);
}

/// A sum of per-CPU differences, modulo 2^64: below zero only if it was read in the middle of a change.
inline std::uint64_t not_negative(std::uint64_t value) {
  return static_cast<std::int64_t>(value) < 0 ? 0 : value;
}

/// The most tries of a read.
inline constexpr int kBracketTries = 256;

/// Reads what a program changes between counting up `begin` and `end`, again if a change was under way: `end` is read
/// first and `begin` last, so equal numbers mean that no change overlapped. A writer that does not finish (its virtual
/// CPU is off) is given time; after kBracketTries the last copy is taken.
/// @param in_step if given: set to false if the copy may be inconsistent, else left as it is
template <class Counter, class Copy>
auto read_bracketed(const Counter& begin, const Counter& end, Copy copy, bool* in_step = nullptr) {
  constexpr int kTriesAtOnce = 16;
  for (int i = 1;; ++i) {
    const std::uint64_t ended = load(end);
    auto result = copy();
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    const bool overlapped = load(begin) != ended;
    if (overlapped && i < kBracketTries) {
      if (i % kTriesAtOnce == 0) {
        ::sched_yield();
      }
      continue;
    }
    if (overlapped && in_step != nullptr) {
      *in_step = false;
    }
    return result;
  }
}

}  // namespace tacho::probes
