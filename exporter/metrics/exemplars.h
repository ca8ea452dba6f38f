#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "metrics/buckets.h"
#include "metrics/value.h"

namespace tacho::metrics {

/// The exemplars of one histogram.
struct BucketExemplars {
  std::vector<const Exemplar*> by_bucket;  ///< of the layout; nullptr: none; empty: none at all
  std::int64_t unix_ns = 0;                ///< Unix time at CLOCK_MONOTONIC's 0

  /// When it was observed, in milliseconds of Unix time: Prometheus keeps no finer ones.
  [[nodiscard]] std::int64_t time_ms(const Exemplar& exemplar) const {
    return (unix_ns + exemplar.time_ns) / 1'000'000;
  }
};

/// For each bucket of row.fine[histogram] the longest observation, of two equally long ones the later. Over a sliding
/// window the exemplars of a bucket become only later, so a reader never has to take one back.
BucketExemplars bucket_exemplars(const Row& row, std::size_t histogram, const BucketLayout& layout,
                                 std::int64_t unix_ns);

/// Only the exemplar of the longest observation. Prometheus 2.42 takes one exemplar for a native histogram, the first
/// that it finds in the classic buckets.
BucketExemplars longest_exemplar(BucketExemplars exemplars);

/// Puts them behind the counts of the histogram whose lines begin at out[begin], as OpenMetrics has them:
/// `7 # {part="lock",share="0.83"} 0.331 1790000000.123`.
void insert_exemplars(std::string& out, std::size_t begin, const BucketExemplars& exemplars);

}  // namespace tacho::metrics
