#include "metrics/family_writer.h"

#include <memory>

#include "metrics/dynamic.h"
#include "metrics/escape.h"
#include "metrics/exemplars.h"

namespace tacho::metrics {

void FamilyWriter::write(std::string& out, const Family& family, std::span<const LabelledValue> samples,
                         const Created& created) {
  if (samples.empty()) {
    return;
  }
  const std::span alone(&family, 1);
  begin(out, alone, 0);
  if (style_.format == Format::protobuf) {
    for (const LabelledValue& sample : samples) {
      proto_.add(proto_labels(sample.labels), family.type, sample.value, created);
    }
  } else {
    const auto text = std::make_shared<const SeriesText>(alone, style_.layout);
    Row row;
    for (const LabelledValue& sample : samples) {
      row.values.assign(1, sample.value);
      TargetSeries(text, sample.labels).append(out, 0, row);
    }
  }
  end(out);
}

void FamilyWriter::begin(std::string& out, std::span<const Family> families, std::size_t family) {
  families_ = families;
  family_ = family;
  first_ = first_sample(families, family);
  if (style_.format != Format::protobuf) {
    append_header(out, families[family], style_.format, style_.window);
    return;
  }
  proto_.begin(families[family], style_.window);
}

void FamilyWriter::add(std::string& out, const TargetSeries& series, const ProtoTarget& target, const Row& row) {
  if (style_.format != Format::protobuf) {
    const std::size_t begin = out.size();
    series.append(out, family_, row);
    if (style_.format == Format::openmetrics && families_[family_].fine && !row.exemplars.empty()) {
      insert_exemplars(out, begin, bucket_exemplars(row, first_, style_.layout, style_.unix_ns));
    }
  } else if (families_[family_].dynamic()) {
    add_dynamic(target, row);
  } else {
    add_fixed(target, row);
  }
}

void FamilyWriter::end(std::string& out) {
  if (style_.format == Format::protobuf) {
    proto_.end(out);
  }
}

void FamilyWriter::add_fixed(const ProtoTarget& target, const Row& row) {
  const Family& family = families_[family_];
  const std::span<const BucketLayout::Bucket> buckets = style_.layout.buckets(family.detail);
  std::string labels = target.labels;
  for (std::size_t i = 0; i < family.samples(); ++i) {
    const std::size_t sample = first_ + i;
    if (!family.label.empty()) {
      labels.resize(target.labels.size());
      append_proto_label(labels, family.label, family.values[i]);
    }
    if (family.fine && sample < row.fine.size() && !row.fine[sample].absent) {
      proto_.add(labels, row.fine[sample], buckets, style_.histograms, target.created,
                 bucket_exemplars(row, sample, style_.layout, style_.unix_ns));
    } else if (family.type == Type::histogram && !family.fine && sample < row.histograms.size() &&
               !row.histograms[sample].absent) {
      proto_.add(labels, row.histograms[sample], buckets, style_.histograms, target.created, {});
    } else if (family.type != Type::histogram && sample < row.values.size() &&
               row.values[sample].kind != Value::Kind::absent) {
      proto_.add(labels, family.type, row.values[sample], target.created);
    }
  }
}

void FamilyWriter::add_dynamic(const ProtoTarget& target, const Row& row) {
  const Family& family = families_[family_];
  // When such a sample was 0 is not known: its label's value came up some time after the target.
  for_each_dynamic(row, family_, append_valid_utf8, [&](const std::string& label, const DynamicSample& sample) {
    std::string labels = target.labels;
    append_proto_label(labels, family.label, label);
    if (family.type == Type::histogram) {
      proto_.add(labels, sample.histogram, style_.layout.buckets(family.detail), style_.histograms, {}, {});
    } else {
      proto_.add(labels, family.type, sample.value, {});
    }
  });
}

}  // namespace tacho::metrics
