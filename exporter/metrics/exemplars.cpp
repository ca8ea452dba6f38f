#include "metrics/exemplars.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

#include "metrics/escape.h"
#include "metrics/number.h"

namespace tacho::metrics {
namespace {

void append_seconds(std::string& out, std::uint64_t ns) {
  std::array<char, kMaxNumber> number{};
  out.append(number.data(), write_seconds(number.data(), ns));
}

void append_exemplar(std::string& out, const Exemplar& exemplar, std::int64_t time_ms) {
  out += " # {";
  for (bool first = true; const auto& [name, value] : exemplar.labels) {
    out.append(std::exchange(first, false) ? "" : ",").append(name).append("=\"");
    append_label_value(out, value);
    out += '"';
  }
  out += "} ";
  append_seconds(out, exemplar.ns);
  out += ' ';
  append_seconds(out, static_cast<std::uint64_t>(std::max<std::int64_t>(time_ms, 0)) * 1'000'000);
}

}  // namespace

BucketExemplars bucket_exemplars(const Row& row, std::size_t histogram, const BucketLayout& layout,
                                 std::int64_t unix_ns) {
  BucketExemplars found{.by_bucket = {}, .unix_ns = unix_ns};
  const auto rank = [](const Exemplar& exemplar) { return std::tuple(exemplar.ns, exemplar.time_ns); };
  for (const Exemplar& exemplar : row.exemplars) {
    if (exemplar.fine != histogram) {
      continue;
    }
    found.by_bucket.resize(layout.buckets().size());
    const auto bucket =
        std::ranges::lower_bound(layout.buckets(), slot_of(exemplar.ns), {}, &BucketLayout::Bucket::last_slot);
    const Exemplar*& place = found.by_bucket.at(static_cast<std::size_t>(bucket - layout.buckets().begin()));
    if (place == nullptr || rank(*place) < rank(exemplar)) {
      place = &exemplar;
    }
  }
  return found;
}

BucketExemplars longest_exemplar(BucketExemplars exemplars) {
  auto& all = exemplars.by_bucket;
  const auto longest = std::find_if(all.rbegin(), all.rend(), [](const Exemplar* one) { return one != nullptr; });
  std::fill(longest == all.rend() ? longest : std::next(longest), all.rend(), nullptr);
  return exemplars;
}

void insert_exemplars(std::string& out, std::size_t begin, const BucketExemplars& exemplars) {
  if (exemplars.by_bucket.empty()) {
    return;
  }
  const std::string lines = out.substr(begin);
  out.resize(begin);
  std::size_t at = 0;
  for (const Exemplar* exemplar : exemplars.by_bucket) {
    const std::size_t end = lines.find('\n', at);
    out.append(lines, at, end - at);
    if (exemplar != nullptr) {
      append_exemplar(out, *exemplar, exemplars.time_ms(*exemplar));
    }
    out += '\n';
    at = end + 1;
  }
  out.append(lines, at);
}

}  // namespace tacho::metrics
