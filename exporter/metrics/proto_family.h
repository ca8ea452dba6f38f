#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "metrics/buckets.h"
#include "metrics/exemplars.h"
#include "metrics/exposition.h"
#include "metrics/native_buckets.h"
#include "metrics/value.h"

namespace tacho::metrics {

/// When a counter or histogram was 0.
using Created = std::optional<std::chrono::system_clock::time_point>;

/// The forms of a histogram on a page that can carry both.
struct HistogramForms {
  bool classic = true;  ///< cumulative buckets by `le`
  bool native = true;   ///< all that is counted, in the exponential buckets that it is counted in
};

/// Labels as fields of a Metric, to be put in front of each of a target's samples.
std::string proto_labels(std::span<const std::pair<std::string, std::string>> labels);
void append_proto_label(std::string& out, std::string_view name, std::string_view value);

/// One `io.prometheus.client.MetricFamily` on its way into an exposition, which has them one after the other, each
/// behind its length. The length stands in front, so a family is put together here and appended when it is complete.
class ProtoFamily {
 public:
  /// Begins a family; memory is kept from the one before.
  /// @param window replaces each `{window}` in the help
  void begin(const Family& family, std::string_view window);
  /// @param labels fields as append_proto_label() makes them
  /// @param buckets of the classic form
  void add(std::string_view labels, Type type, const Value& value, const Created& created);
  template <std::size_t PerOctave>
  void add(std::string_view labels, const SlotHistogram<PerOctave>& histogram,
           std::span<const BucketLayout::Bucket> buckets, HistogramForms forms, const Created& created,
           const BucketExemplars& exemplars);
  /// Appends the family with its length, nothing if it has no samples.
  void end(std::string& out);

 private:
  template <class Fill>
  void add_metric(std::string_view labels, unsigned field, Fill fill);

  std::string fields_;
  std::size_t header_ = 0;  // so long without samples
  NativeBuckets native_;
};

}  // namespace tacho::metrics
