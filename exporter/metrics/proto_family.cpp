#include "metrics/proto_family.h"

#include <array>
#include <vector>

#include "metrics/protobuf.h"

namespace tacho::metrics {
namespace {

// Numbers of the fields of io.prometheus.client's messages.
namespace family_field {
constexpr unsigned kName = 1, kHelp = 2, kType = 3, kMetric = 4, kUnit = 5;
}
namespace metric_field {
constexpr unsigned kLabel = 1, kGauge = 2, kCounter = 3, kHistogram = 7;
}
namespace label_field {
constexpr unsigned kName = 1, kValue = 2;
}
namespace number_field {  // of Counter, Gauge
constexpr unsigned kValue = 1, kCreated = 3;
}
namespace histogram_field {
constexpr unsigned kCount = 1, kSum = 2, kBucket = 3, kSchema = 5, kZeroThreshold = 6, kZeroCount = 7,
                   kPositiveSpan = 12, kPositiveDelta = 13, kCreated = 15, kExemplar = 16;
}
namespace bucket_field {
constexpr unsigned kCumulativeCount = 1, kUpperBound = 2, kExemplar = 3;
}
namespace exemplar_field {
constexpr unsigned kLabel = 1, kValue = 2, kTimestamp = 3;
}
namespace span_field {
constexpr unsigned kOffset = 1, kLength = 2;
}
namespace timestamp_field {
constexpr unsigned kSeconds = 1, kNanos = 2;
}

/// Of enum MetricType.
std::uint64_t type_number(Type type) {
  return type == Type::counter ? 0 : type == Type::gauge ? 1 : 4;
}

/// The number that reads the text of the other formats as this one.
double real(const Value& value) {
  switch (value.kind) {
    case Value::Kind::count:
      return static_cast<double>(static_cast<std::uint64_t>(value.integer));
    case Value::Kind::nanoseconds:
      return static_cast<double>(value.integer) / 1e9;
    default:
      return value.real;
  }
}

void append_timestamp(std::string& out, unsigned field, std::chrono::nanoseconds since_1970) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_1970);
  Protobuf(out).message(field, [&] {
    Protobuf time(out);
    time.integer(timestamp_field::kSeconds, static_cast<std::uint64_t>(seconds.count()));
    time.integer(timestamp_field::kNanos, static_cast<std::uint64_t>((since_1970 - seconds).count()));
  });
}

void append_created(std::string& out, unsigned field, const Created& created) {
  if (created) {
    append_timestamp(out, field, created->time_since_epoch());
  }
}

void append_label(std::string& out, unsigned field, std::string_view name, std::string_view value) {
  Protobuf(out).message(field, [&] {
    Protobuf pair(out);
    pair.text(label_field::kName, name);
    pair.text(label_field::kValue, value);
  });
}

void append_exemplar(std::string& out, unsigned field, const Exemplar& exemplar, const BucketExemplars& of) {
  Protobuf(out).message(field, [&] {
    for (const auto& [name, value] : exemplar.labels) {
      append_label(out, exemplar_field::kLabel, name, value);
    }
    Protobuf(out).real(exemplar_field::kValue, static_cast<double>(exemplar.ns) / 1e9);
    append_timestamp(out, exemplar_field::kTimestamp, std::chrono::milliseconds(of.time_ms(exemplar)));
  });
}

constexpr std::size_t kMaxBucket = 2 + 1 + kMaxVarint + 1 + sizeof(double);

/// A `Bucket` field at `out`, which has room for kMaxBucket bytes; returns the end. Most of a page is these.
char* write_bucket(char* out, std::uint64_t cumulative, double bound) {
  constexpr unsigned kBytes = 2;
  constexpr unsigned kFixed64 = 1;
  char* end = out + 2;
  *end++ = static_cast<char>(bucket_field::kCumulativeCount << 3U);
  end = write_varint(end, cumulative);
  *end++ = static_cast<char>(bucket_field::kUpperBound << 3U | kFixed64);
  end = write_fixed64(end, bound);
  out[0] = static_cast<char>(histogram_field::kBucket << 3U | kBytes);
  out[1] = static_cast<char>(end - out - 2);
  return end;
}

template <std::size_t PerOctave>
void append_classic(std::string& out, const SlotHistogram<PerOctave>& histogram,
                    std::span<const BucketLayout::Bucket> buckets) {
  const std::size_t size = out.size();
  out.resize_and_overwrite(size + buckets.size() * kMaxBucket, [&](char* text, std::size_t) {
    char* end = text + size;
    std::uint64_t cumulative = 0;
    std::size_t slot = 0;
    for (const BucketLayout::Bucket& bucket : buckets) {
      for (const std::size_t last = bucket.last(PerOctave); slot <= last; ++slot) {
        cumulative += histogram.slots[slot];
      }
      end = write_bucket(end, cumulative, bucket.bound);
    }
    return static_cast<std::size_t>(end - text);
  });
}

/// The same where some buckets have an exemplar.
template <std::size_t PerOctave>
void append_classic(std::string& out, const SlotHistogram<PerOctave>& histogram,
                    std::span<const BucketLayout::Bucket> buckets, const BucketExemplars& exemplars) {
  std::uint64_t cumulative = 0;
  std::size_t slot = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const BucketLayout::Bucket& bucket = buckets[i];
    for (const std::size_t last = bucket.last(PerOctave); slot <= last; ++slot) {
      cumulative += histogram.slots[slot];
    }
    Protobuf(out).message(histogram_field::kBucket, [&] {
      Protobuf fields(out);
      fields.integer(bucket_field::kCumulativeCount, cumulative);
      fields.real(bucket_field::kUpperBound, bucket.bound);
      if (const Exemplar* exemplar = exemplars.by_bucket[i]) {
        append_exemplar(out, bucket_field::kExemplar, *exemplar, exemplars);
      }
    });
  }
}

void append_deltas(std::string& out, const std::vector<std::int64_t>& deltas) {
  const std::size_t size = out.size();
  out.resize_and_overwrite(size + deltas.size() * kMaxVarint, [&](char* text, std::size_t) {
    char* end = text + size;
    for (const std::int64_t delta : deltas) {
      end = write_varint(end, zigzag(delta));
    }
    return static_cast<std::size_t>(end - text);
  });
}

void append_native(std::string& out, const NativeBuckets& native, int schema, std::uint64_t zeros) {
  Protobuf fields(out);
  fields.signed_integer(histogram_field::kSchema, schema);
  // Not 0: that is what tells an empty native histogram from a classic one.
  fields.real(histogram_field::kZeroThreshold, kZeroThreshold);
  fields.integer(histogram_field::kZeroCount, zeros);
  for (const NativeBuckets::Span& span : native.spans) {
    fields.message(histogram_field::kPositiveSpan, [&] {
      Protobuf each(out);
      each.signed_integer(span_field::kOffset, span.offset);
      each.integer(span_field::kLength, span.length);
    });
  }
  if (!native.deltas.empty()) {
    fields.message(histogram_field::kPositiveDelta, [&] { append_deltas(out, native.deltas); });
  }
}

}  // namespace

void append_proto_label(std::string& out, std::string_view name, std::string_view value) {
  append_label(out, metric_field::kLabel, name, value);
}

std::string proto_labels(std::span<const std::pair<std::string, std::string>> labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    append_proto_label(out, name, value);
  }
  return out;
}

void ProtoFamily::begin(const Family& family, std::string_view window) {
  fields_.clear();
  Protobuf fields(fields_);
  fields.text(family_field::kName, family.name);
  if (!family.help.empty()) {
    fields.text(family_field::kHelp, expand_window(family.help, window));
  }
  fields.integer(family_field::kType, type_number(family.type));
  if (!family.unit.empty()) {
    fields.text(family_field::kUnit, family.unit);
  }
  header_ = fields_.size();
}

template <class Fill>
void ProtoFamily::add_metric(std::string_view labels, unsigned field, Fill fill) {
  Protobuf(fields_).message(family_field::kMetric, [&] {
    fields_ += labels;
    Protobuf(fields_).message(field, fill);
  });
}

void ProtoFamily::add(std::string_view labels, Type type, const Value& value, const Created& created) {
  const bool counter = type == Type::counter;
  add_metric(labels, counter ? metric_field::kCounter : metric_field::kGauge, [&] {
    Protobuf(fields_).real(number_field::kValue, real(value));
    if (counter) {
      append_created(fields_, number_field::kCreated, created);
    }
  });
}

template <std::size_t PerOctave>
void ProtoFamily::add(std::string_view labels, const SlotHistogram<PerOctave>& histogram,
                      std::span<const BucketLayout::Bucket> buckets, HistogramForms forms, const Created& created,
                      const BucketExemplars& exemplars) {
  add_metric(labels, metric_field::kHistogram, [&] {
    Protobuf fields(fields_);
    fields.integer(histogram_field::kCount, total(histogram));
    fields.real(histogram_field::kSum, static_cast<double>(histogram.sum_ns) / 1e9);
    if (forms.classic && exemplars.by_bucket.empty()) {
      append_classic(fields_, histogram, buckets);
    } else if (forms.classic) {
      append_classic(fields_, histogram, buckets, forms.native ? longest_exemplar(exemplars) : exemplars);
    }
    if (forms.native) {
      native_.assign(histogram);
      append_native(fields_, native_, kNativeSchema<PerOctave>, histogram.slots.front());
    }
    append_created(fields_, histogram_field::kCreated, created);
    // A native histogram has its own, since readers may leave the classic buckets out.
    for (const Exemplar* exemplar : exemplars.by_bucket) {
      if (forms.native && exemplar != nullptr) {
        append_exemplar(fields_, histogram_field::kExemplar, *exemplar, exemplars);
      }
    }
  });
}

template void ProtoFamily::add(std::string_view, const Histogram&, std::span<const BucketLayout::Bucket>,
                               HistogramForms, const Created&, const BucketExemplars&);
template void ProtoFamily::add(std::string_view, const FineHistogram&, std::span<const BucketLayout::Bucket>,
                               HistogramForms, const Created&, const BucketExemplars&);

void ProtoFamily::end(std::string& out) {
  if (fields_.size() > header_) {
    append_varint(out, fields_.size());
    out += fields_;
  }
}

}  // namespace tacho::metrics
