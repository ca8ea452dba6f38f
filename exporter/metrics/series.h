#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/buckets.h"
#include "metrics/family.h"
#include "metrics/value.h"

namespace tacho::metrics {

/// The place where the samples of families[family] begin among those of their kind in a Row.
std::size_t first_sample(std::span<const Family> families, std::size_t family);

using Labels = std::vector<std::pair<std::string, std::string>>;

/// The series of one target and one probe: everything of a line but its number is built once, so that a scrape only
/// copies and formats (about 20 ns a line in cache, see tests/bench/metrics_bench.cpp). The lines are the same in both
/// formats.
///
/// Memory: a counter or gauge keeps its prefix and 4 bytes; a histogram keeps three prefixes for all of its lines
/// (30 with one bucket per octave, 3 of a mean), its `le` values are shared through the layout. That is ~130 bytes for
/// a number and ~400 for a histogram, whether they have appeared yet or not: memory().
class TargetSeries {
 public:
  /// `labels` come first on every line in the order given, then the family's own label, then `le`. Their names must be
  /// valid (config::check_label_name), distinct, and differ from `le` and every family's own label; values may be
  /// anything. `families` and `layout` must outlive this object.
  TargetSeries(std::span<const Family> families, std::span<const std::pair<std::string, std::string>> labels,
               const BucketLayout& layout);

  /// Appends the lines of families[family] from `row`, in the order of Family::values; samples of a family whose label
  /// values are known at run time only, in the byte order of those values, equal ones added up. A row that is
  /// shorter than the families promise, or has samples that are absent, gives fewer lines. No header: see
  /// append_header.
  void append(std::string& out, std::size_t family, const Row& row) const;

  /// Lines of all families without those known at run time only.
  [[nodiscard]] std::size_t lines() const { return lines_; }
  /// Bytes held on the heap.
  [[nodiscard]] std::size_t memory() const;

 private:
  /// The place where a family's part begins in the pieces and in Row::values or Row::histograms.
  struct Place {
    std::uint32_t piece = 0;
    std::uint32_t sample = 0;
  };

  void add_piece(std::string_view name, std::string_view suffix, std::string_view labels, std::string_view end);
  void add_sample(const Family& family, const std::string& labels);
  [[nodiscard]] std::string_view piece(std::size_t index) const;
  void append_fixed(std::string& out, std::size_t family, const Row& row) const;
  void append_dynamic(std::string& out, std::size_t family, const Row& row) const;
  /// `label` is the escaped value of the family's own label.
  void append_sample(std::string& out, std::size_t family, std::string_view label, const DynamicSample& sample) const;

  std::span<const Family> families_;
  const BucketLayout* layout_;
  std::string text_;                 ///< all pieces, one after the other
  std::vector<std::uint32_t> ends_;  ///< piece i ends here and piece i + 1 begins
  std::vector<Place> places_;
  std::size_t lines_ = 0;
};

}  // namespace tacho::metrics
