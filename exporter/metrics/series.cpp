#include "metrics/series.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "metrics/dynamic.h"
#include "metrics/escape.h"
#include "metrics/number.h"

namespace tacho::metrics {
namespace {

/// The beginning of a line, in parts.
struct Start {
  std::string_view head;
  std::string_view labels;
  std::string_view tail;

  [[nodiscard]] std::size_t size() const { return head.size() + labels.size() + tail.size(); }
};

/// The three beginnings of a histogram's lines; a bucket's ends where the value of `le` begins.
struct HistogramText {
  Start bucket;
  Start sum;
  Start count;
};

char* copy(char* out, std::string_view text) {
  std::memcpy(out, text.data(), text.size());
  return out + text.size();
}

char* copy(char* out, const Start& start) {
  return copy(copy(copy(out, start.head), start.labels), start.tail);
}

char* end_line(char* out) {
  *out = '\n';
  return out + 1;
}

/// Lets `write(char*) -> char*` append at most `bound` characters to `out`.
template <class Write>
void append_with(std::string& out, std::size_t bound, Write write) {
  const std::size_t size = out.size();
  out.resize_and_overwrite(
      size + bound, [&](char* text, std::size_t) { return static_cast<std::size_t>(write(text + size) - text); });
}

void append_number(std::string& out, const Start& start, const Value& value) {
  append_with(out, start.size() + kMaxNumber + 1,
              [&](char* p) { return end_line(write_value(copy(p, start), value)); });
}

template <std::size_t PerOctave>
void append_histogram(std::string& out, const HistogramText& text, const SlotHistogram<PerOctave>& histogram,
                      std::span<const BucketLayout::Bucket> buckets) {
  constexpr std::size_t kTail = sizeof(BucketLayout::Bucket::text);
  const std::size_t bound = buckets.size() * (text.bucket.size() + kTail + kMaxNumber + 1) + text.sum.size() +
                            text.count.size() + 2 * (kMaxNumber + 1);
  append_with(out, bound, [&](char* p) {
    std::array<char, kMaxNumber> digits{'0'};
    std::size_t length = 1;
    std::uint64_t cumulative = 0;
    std::size_t slot = 0;
    const std::string_view start(p, text.bucket.size());  // of the first line, once it is there
    for (const BucketLayout::Bucket& bucket : buckets) {
      const std::uint64_t before = cumulative;
      for (const std::size_t last = bucket.last(PerOctave); slot <= last; ++slot) {
        cumulative += histogram.slots[slot];
      }
      if (cumulative != before) {  // most buckets of a distribution are below or above all of it
        length = static_cast<std::size_t>(write_count(digits.data(), cumulative) - digits.data());
      }
      // Copies of a fixed length are a few moves; what is too much is overwritten.
      p = p == start.data() ? copy(p, text.bucket) : copy(p, start);
      std::memcpy(p, bucket.text.data(), bucket.text.size());
      p += bucket.length;
      std::memcpy(p, digits.data(), digits.size());
      p = end_line(p + length);
    }
    p = end_line(write_seconds(copy(p, text.sum), histogram.sum_ns));
    return end_line(write_count(copy(p, text.count), cumulative));
  });
}

/// Without labels of the target the first comma is too much, and the braces if there is nothing between them.
Start start_of(const SeriesText::Piece& piece, std::string_view labels) {
  if (labels.empty() && piece.tail.starts_with('}')) {
    return {.head = piece.head.substr(0, piece.head.size() - 1), .labels = "", .tail = piece.tail.substr(1)};
  }
  return {.head = piece.head,
          .labels = labels,
          .tail = piece.tail.substr(labels.empty() && piece.tail.starts_with(',') ? 1 : 0)};
}

/// Behind a lone comma, too: labels that stand before it come later.
std::string with_label(std::string labels, std::string_view name, std::string_view value) {
  if (!labels.empty() && labels != ",") {
    labels += ',';
  }
  labels.append(name).append("=\"");
  append_label_value(labels, value);
  return labels + '"';
}

/// What a row keeps apart.
int kind_of(const Family& family) {
  return family.type != Type::histogram ? 0 : family.fine ? 1 : 2;
}

}  // namespace

std::size_t first_sample(std::span<const Family> families, std::size_t family) {
  std::size_t first = 0;
  for (const Family& before : families.first(family)) {
    first += kind_of(before) == kind_of(families[family]) ? before.samples() : 0;
  }
  return first;
}

Value sum(const Value& a, const Value& b) {
  if (a.kind == Value::Kind::real) {
    return Value::number(a.real + b.real);
  }
  Value result = a;
  result.integer =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(a.integer) + static_cast<std::uint64_t>(b.integer));
  return result;
}

SeriesText::SeriesText(std::span<const Family> families, const BucketLayout& layout)
    : families_(families), layout_(&layout) {
  for (const Family& family : families) {
    places_.push_back({static_cast<std::uint32_t>(ends_.size() / 2),
                       static_cast<std::uint32_t>(first_sample(families, places_.size()))});
    lines_ += family.samples() * (family.type == Type::histogram ? layout.lines(family.detail) : 1);
    if (family.label.empty()) {
      add_sample(family, "");
    } else if (family.dynamic()) {
      // From the labels' brace to where the value begins; the rest is put together in append_dynamic.
      std::string open = with_label(",", family.label, "");
      open.pop_back();
      add_piece("", "", open, "");
    } else {
      for (const std::string_view value : family.values) {
        add_sample(family, with_label(",", family.label, value));
      }
    }
  }
}

void SeriesText::add_sample(const Family& family, const std::string& own) {
  if (family.type != Type::histogram) {
    add_piece(family.name, "", own, "} ");
    return;
  }
  add_piece(family.name, "_bucket", own, ",le=\"");
  add_piece(family.name, "_sum", own, "} ");
  add_piece(family.name, "_count", own, "} ");
}

void SeriesText::add_piece(std::string_view name, std::string_view suffix, std::string_view own, std::string_view end) {
  text_.append(name).append(suffix).append("{");
  ends_.push_back(static_cast<std::uint32_t>(text_.size()));
  text_.append(own).append(end);
  ends_.push_back(static_cast<std::uint32_t>(text_.size()));
}

SeriesText::Piece SeriesText::piece(std::size_t index) const {
  const std::string_view text = text_;
  const std::uint32_t begin = index == 0 ? 0 : ends_[2 * index - 1];
  const std::uint32_t labels = ends_[2 * index];
  return {.head = text.substr(begin, labels - begin), .tail = text.substr(labels, ends_[2 * index + 1] - labels)};
}

TargetSeries::TargetSeries(std::shared_ptr<const SeriesText> text,
                           std::span<const std::pair<std::string, std::string>> labels)
    : text_(std::move(text)) {
  for (const auto& [name, value] : labels) {
    labels_ = with_label(std::move(labels_), name, value);
  }
  labels_.shrink_to_fit();
}

void TargetSeries::append(std::string& out, std::size_t family, const Row& row) const {
  if (text_->families()[family].dynamic()) {
    append_dynamic(out, family, row);
  } else {
    append_fixed(out, family, row);
  }
}

void TargetSeries::append_fixed(std::string& out, std::size_t family, const Row& row) const {
  const Family& of = text_->families()[family];
  const SeriesText::Place place = text_->place(family);
  for (std::size_t i = 0; i < of.samples(); ++i) {
    const std::size_t sample = place.sample + i;
    if (of.type != Type::histogram) {
      if (sample < row.values.size() && row.values[sample].kind != Value::Kind::absent) {
        append_number(out, start_of(text_->piece(place.piece + i), labels_), row.values[sample]);
      }
      continue;
    }
    const std::size_t first = place.piece + 3 * i;
    const auto append = [&](const auto& histograms) {
      if (sample < histograms.size() && !histograms[sample].absent) {
        append_histogram(out,
                         {.bucket = start_of(text_->piece(first), labels_),
                          .sum = start_of(text_->piece(first + 1), labels_),
                          .count = start_of(text_->piece(first + 2), labels_)},
                         histograms[sample], text_->layout().buckets(of.detail));
      }
    };
    if (of.fine) {
      append(row.fine);
    } else {
      append(row.histograms);
    }
  }
}

void TargetSeries::append_dynamic(std::string& out, std::size_t family, const Row& row) const {
  for_each_dynamic(row, family, append_label_value, [&](const std::string& label, const DynamicSample& sample) {
    append_sample(out, family, label, sample);
  });
}

void TargetSeries::append_sample(std::string& out, std::size_t family, std::string_view label,
                                 const DynamicSample& sample) const {
  const Family& of = text_->families()[family];
  const Start open = start_of(text_->piece(text_->place(family).piece), labels_);
  const auto line = [&](std::string_view suffix, std::string_view end) {
    std::string text;
    text.reserve(of.name.size() + suffix.size() + open.size() + label.size() + end.size());
    return text.append(of.name)
        .append(suffix)
        .append(open.head)
        .append(open.labels)
        .append(open.tail)
        .append(label)
        .append(end);
  };
  if (of.type == Type::histogram) {
    const std::string bucket = line("_bucket", "\",le=\"");
    const std::string sum_line = line("_sum", "\"} ");
    const std::string count = line("_count", "\"} ");
    append_histogram(out, {.bucket = {bucket, "", ""}, .sum = {sum_line, "", ""}, .count = {count, "", ""}},
                     sample.histogram, text_->layout().buckets(of.detail));
  } else {
    const std::string number = line("", "\"} ");
    append_number(out, {number, "", ""}, sample.value);
  }
}

}  // namespace tacho::metrics
