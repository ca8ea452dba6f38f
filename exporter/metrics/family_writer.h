#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "metrics/buckets.h"
#include "metrics/exposition.h"
#include "metrics/proto_family.h"
#include "metrics/series.h"

namespace tacho::metrics {

/// The style of a page.
struct PageStyle {
  Format format = Format::prometheus_text;
  HistogramForms histograms;   ///< of protobuf; the text formats have the classic one only
  std::string window;          ///< "10s"
  const BucketLayout& layout;  ///< of classic histograms
  std::int64_t unix_ns = 0;    ///< Unix time at CLOCK_MONOTONIC's 0; of exemplars
};

/// The common part of a target's samples in protobuf.
struct ProtoTarget {
  std::string labels;  ///< as proto_labels() makes them
  Created created;
};

/// A sample with labels of its own.
struct LabelledValue {
  Labels labels;
  Value value;
};

/// Writes families, one after the other, in any format. Those of targets: begin() a family, add() each target's
/// samples, end() it. `out` may be another string at each call, as long as the strings follow each other on the page.
class FamilyWriter {
 public:
  /// `style.layout` must outlive this object.
  explicit FamilyWriter(const PageStyle& style) : style_(style) {}

  /// A whole family of counters or gauges without a label for all samples; nothing if there are none.
  /// @param created of counters
  void write(std::string& out, const Family& family, std::span<const LabelledValue> samples, const Created& created);

  void begin(std::string& out, std::span<const Family> families, std::size_t family);
  /// `series` is of the same families, `target` and `row` of its target.
  void add(std::string& out, const TargetSeries& series, const ProtoTarget& target, const Row& row);
  void end(std::string& out);

 private:
  void add_fixed(const ProtoTarget& target, const Row& row);
  void add_dynamic(const ProtoTarget& target, const Row& row);

  PageStyle style_;
  std::span<const Family> families_;
  std::size_t family_ = 0;
  std::size_t first_ = 0;  ///< the family's first sample in a row
  ProtoFamily proto_;
};

}  // namespace tacho::metrics
