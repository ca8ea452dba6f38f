#include "metrics/exemplars.h"

#include <array>
#include <catch2/catch.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "metrics/family_writer.h"

// Golden text; that another parser finds in it what the row says is exposition_judges.py's.

namespace tacho::metrics {
namespace {

constexpr std::array<Family, 2> kFamilies = {{
    {"t_other_seconds", Type::histogram, "seconds", "h", "", {}},
    {"t_seconds", Type::histogram, "seconds", "h", "", {}, true},
}};
constexpr std::int64_t kBooted = 1'790'000'000'000'000'000;

Exemplar of(std::uint64_t ns, std::int64_t time_ns, std::string part) {
  return {.fine = 0, .ns = ns, .time_ns = time_ns, .labels = {{"part", std::move(part)}, {"share", "0.83"}}};
}

Row row_of(std::vector<Exemplar> exemplars) {
  Row row;
  row.histograms.resize(1);
  row.fine.resize(1);
  for (const Exemplar& exemplar : exemplars) {
    ++row.fine[0].slots.at(fine_slot_of(exemplar.ns));
    row.fine[0].sum_ns += exemplar.ns;
  }
  row.exemplars = std::move(exemplars);
  return row;
}

std::string written(const Row& row, Format format, std::size_t family = 1) {
  const BucketLayout layout;
  const Labels labels{{"target", "a"}};
  FamilyWriter writer({.format = format, .histograms = {}, .window = "10s", .layout = layout, .unix_ns = kBooted});
  std::string out;
  writer.begin(out, kFamilies, family);
  writer.add(out, TargetSeries(kFamilies, labels, layout), {.labels = proto_labels(labels), .created = {}}, row);
  writer.end(out);
  return out;
}

std::vector<std::string> lines_with(const std::string& text, std::string_view what) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.contains(what)) {
      found.push_back(line);
    }
  }
  return found;
}

TEST_CASE("a bucket's exemplar is its longest observation, with labels, value and time") {
  const Row row = row_of({of(300'000'000, 1'000'000'000, "cpu"), of(331'000'000, 61'234'567'890, "lock"),
                          of(320'000'000, 99'000'000'000, "disk"), of(70'000'000'001, 5'000'999'999, "\"")});
  const std::string text = written(row, Format::openmetrics);
  CHECK(lines_with(text, " # ") ==
        std::vector<std::string>{
            R"(t_seconds_bucket{target="a",le="0.5"} 3 # {part="lock",share="0.83"} 0.331 1790000061.234)",
            R"(t_seconds_bucket{target="a",le="+Inf"} 4 # {part="\"",share="0.83"} 70.000000001 1790000005)"});
  std::string without = written(row_of({}), Format::openmetrics);
  CHECK(lines_with(text, "t_seconds").size() == lines_with(without, "t_seconds").size());
  CHECK(text.ends_with("t_seconds_sum{target=\"a\"} 70.951000001\nt_seconds_count{target=\"a\"} 4\n"));
}

TEST_CASE("of two that took as long the later one is the exemplar, and a bound is in the bucket that it ends") {
  const Row row = row_of({of(500'000'000, 7'000'000'000, "cpu"), of(500'000'000, 3'000'000'000, "lock"),
                          of(500'000'001, 1'000'000'000, "disk")});
  CHECK(lines_with(written(row, Format::openmetrics), " # ") ==
        std::vector<std::string>{
            R"(t_seconds_bucket{target="a",le="0.5"} 2 # {part="cpu",share="0.83"} 0.5 1790000007)",
            R"(t_seconds_bucket{target="a",le="1.0"} 3 # {part="disk",share="0.83"} 0.500000001 1790000001)"});
}

TEST_CASE("beside a native histogram only the longest one stays") {
  const BucketLayout layout;
  const Row row = row_of({of(10'000'000, 4, "a"), of(500'000'000, 6, "b"), of(70'000'000, 9, "c")});
  std::string kept;
  for (const Exemplar* exemplar : longest_exemplar(bucket_exemplars(row, 0, layout, 0)).by_bucket) {
    kept += exemplar == nullptr ? "" : exemplar->labels[0].second;
  }
  CHECK(kept == "b");
  CHECK(longest_exemplar({}).by_bucket.empty());
}

TEST_CASE("Prometheus text has no exemplars, and other histograms have none") {
  const Row row = row_of({of(300'000'000, 1'000'000'000, "cpu")});
  CHECK(lines_with(written(row, Format::prometheus_text), " # ").empty());
  CHECK(lines_with(written(row, Format::openmetrics, 0), " # ").empty());
}

}  // namespace
}  // namespace tacho::metrics
