#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

/// What the lines of all targets of one probe have in common: the names before their labels and what follows behind.
class SeriesText {
 public:
  /// `families` and `layout` must outlive this object.
  SeriesText(std::span<const Family> families, const BucketLayout& layout);

  /// The beginning of a line is head, labels, tail.
  struct Piece {
    std::string_view head;  ///< `name_bucket{`
    std::string_view tail;  ///< `,own="label",le="`; with the comma that labels of a target take
  };
  [[nodiscard]] Piece piece(std::size_t index) const;

  /// The place where a family's part begins in the pieces and in Row::values or Row::histograms. A counter or gauge
  /// takes a piece for each of its values, a histogram three (its buckets, sum, count).
  struct Place {
    std::uint32_t piece = 0;
    std::uint32_t sample = 0;
  };
  [[nodiscard]] const Place& place(std::size_t family) const { return places_[family]; }

  [[nodiscard]] std::span<const Family> families() const { return families_; }
  [[nodiscard]] const BucketLayout& layout() const { return *layout_; }
  /// Lines of all families without those known at run time only.
  [[nodiscard]] std::size_t lines() const { return lines_; }

 private:
  void add_piece(std::string_view name, std::string_view suffix, std::string_view own, std::string_view end);
  void add_sample(const Family& family, const std::string& own);

  std::span<const Family> families_;
  const BucketLayout* layout_;
  std::string text_;                 ///< all pieces, one after the other
  std::vector<std::uint32_t> ends_;  ///< of heads and tails in turn
  std::vector<Place> places_;
  std::size_t lines_ = 0;
};

/// The series of one target and one probe: everything of a line but its number is built once, so that a scrape only
/// copies and formats (about 20 ns a line in cache, see tests/bench/metrics_bench.cpp). The lines are the same in both
/// formats.
///
/// Memory: the target's labels. A thousand targets' lines would not fit into a CPU's cache if each had its own text.
class TargetSeries {
 public:
  /// `labels` come first on every line in the order given, then the family's own label, then `le`. Their names must be
  /// valid (config::check_label_name), distinct, and differ from `le` and every family's own label; values may be
  /// anything.
  TargetSeries(std::shared_ptr<const SeriesText> text, std::span<const std::pair<std::string, std::string>> labels);
  /// With a text of its own.
  TargetSeries(std::span<const Family> families, std::span<const std::pair<std::string, std::string>> labels,
               const BucketLayout& layout)
      : TargetSeries(std::make_shared<const SeriesText>(families, layout), labels) {}

  /// Appends the lines of families[family] from `row`, in the order of Family::values; samples of a family whose label
  /// values are known at run time only, in the byte order of those values, equal ones added up. A row that is
  /// shorter than the families promise, or has samples that are absent, gives fewer lines. No header: see
  /// append_header.
  void append(std::string& out, std::size_t family, const Row& row) const;

  /// Lines of all families without those known at run time only.
  [[nodiscard]] std::size_t lines() const { return text_->lines(); }
  /// Bytes held on the heap for this target alone.
  [[nodiscard]] std::size_t memory() const { return labels_.capacity() + 1; }

 private:
  void append_fixed(std::string& out, std::size_t family, const Row& row) const;
  void append_dynamic(std::string& out, std::size_t family, const Row& row) const;
  /// `label` is the escaped value of the family's own label.
  void append_sample(std::string& out, std::size_t family, std::string_view label, const DynamicSample& sample) const;

  std::shared_ptr<const SeriesText> text_;
  std::string labels_;
};

}  // namespace tacho::metrics
