#include "metrics/series.h"

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "metrics/escape.h"

namespace tacho::metrics {
namespace {

constexpr std::array<std::string_view, 2> kDirections = {"send", "receive"};
constexpr std::array<std::string_view, 2> kOutcomes = {"ready", "a\"b"};
constexpr std::array<Family, 7> kFamilies = {{
    {"t_bytes_total", Type::counter, "bytes", "h", "direction", kDirections},
    {"t_wait_seconds", Type::histogram, "seconds", "h", "", {}},
    {"t_rps", Type::gauge, "", "h", "", {}},
    {"t_calls_total", Type::counter, "", "h", "peer", {}},
    {"t_poll_seconds", Type::histogram, "seconds", "h", "outcome", kOutcomes},
    {"t_call_seconds", Type::histogram, "seconds", "h", "peer", {}},
    {"t_idle_seconds_total", Type::counter, "seconds", "h", "", {}},
}};

const Labels kLabels = {{"target", "web"}, {"pod", "a\\b\n\"c\"\xff"}};
const std::string kCommon = R"({target="web",pod="a\\b\n\"c\")"
                            "\uFFFD\"";

Row make_row() {
  Row row;
  row.values = {Value::count(7), Value::count(18'446'744'073'709'551'615U), Value::number(0.25),
                Value::nanoseconds(1'000'000'001)};
  row.histograms.resize(3);
  return row;
}

std::string lines(const TargetSeries& series, std::size_t family, const Row& row) {
  std::string out = "before\n";
  series.append(out, family, row);
  REQUIRE(out.starts_with("before\n"));
  return out.substr(7);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    result.push_back(line);
  }
  return result;
}

DynamicSample dynamic(std::size_t family, std::string value, std::uint64_t n) {
  DynamicSample sample;
  sample.family = family;
  sample.label_value = std::move(value);
  sample.value = Value::count(n);
  sample.histogram.slots[kOverflowSlot] = n;
  sample.histogram.sum_ns = n * 100;
  return sample;
}

TEST_CASE("counters and gauges: target labels, own label, value by kind") {
  const BucketLayout layout;
  const TargetSeries series(kFamilies, kLabels, layout);
  const Row row = make_row();
  CHECK(lines(series, 0, row) == "t_bytes_total" + kCommon + ",direction=\"send\"} 7\n" + "t_bytes_total" + kCommon +
                                     ",direction=\"receive\"} 18446744073709551615\n");
  CHECK(lines(series, 2, row) == "t_rps" + kCommon + "} 0.25\n");
  CHECK(lines(series, 6, row) == "t_idle_seconds_total" + kCommon + "} 1.000000001\n");
  CHECK(series.lines() == 2 + 30 + 1 + 2 * 30 + 1);
}

TEST_CASE("histograms: cumulative buckets, sum, count") {
  const BucketLayout layout;
  const TargetSeries series(kFamilies, kLabels, layout);
  Row row = make_row();
  row.histograms[0].slots[0] = 3;
  row.histograms[0].slots[1] = 4;               // up to 1.25 us: in the bucket of 2 us
  row.histograms[0].slots[kOverflowSlot] = 10;  // only in +Inf
  row.histograms[0].sum_ns = 700'000'000'500;
  row.histograms[2].slots[kOverflowSlot - 1] = 1;

  const std::vector<std::string> wait = split(lines(series, 1, row));
  REQUIRE(wait.size() == layout.lines());
  CHECK(wait[0] == "t_wait_seconds_bucket" + kCommon + ",le=\"9.5367431640625e-07\"} 3");
  CHECK(wait[1] == "t_wait_seconds_bucket" + kCommon + ",le=\"1.9073486328125e-06\"} 7");
  CHECK(wait[26] == "t_wait_seconds_bucket" + kCommon + ",le=\"64.0\"} 7");
  CHECK(wait[27] == "t_wait_seconds_bucket" + kCommon + ",le=\"+Inf\"} 17");
  CHECK(wait[28] == "t_wait_seconds_sum" + kCommon + "} 700.0000005");
  CHECK(wait[29] == "t_wait_seconds_count" + kCommon + "} 17");

  const std::vector<std::string> poll = split(lines(series, 4, row));
  REQUIRE(poll.size() == 2 * layout.lines());
  CHECK(poll[29] == "t_poll_seconds_count" + kCommon + ",outcome=\"ready\"} 0");
  CHECK(poll[30] == "t_poll_seconds_bucket" + kCommon + ",outcome=\"a\\\"b\",le=\"9.5367431640625e-07\"} 0");
  CHECK(poll[56] == "t_poll_seconds_bucket" + kCommon + ",outcome=\"a\\\"b\",le=\"64.0\"} 1");
  CHECK(poll[58] == "t_poll_seconds_sum" + kCommon + ",outcome=\"a\\\"b\"} 0");
}

TEST_CASE("every layout counts every slot below its bounds") {
  std::mt19937_64 random(5);
  Row row = make_row();
  for (std::uint64_t& slot : row.histograms[0].slots) {
    slot = random() % 1'000'003;
  }
  for (const unsigned per_octave : {1U, 2U, 4U}) {
    const BucketLayout layout(per_octave);
    const TargetSeries series(kFamilies, {}, layout);
    const std::vector<std::string> written = split(lines(series, 1, row));
    REQUIRE(written.size() == layout.lines());
    for (std::size_t i = 0; i < layout.buckets().size(); ++i) {
      const BucketLayout::Bucket& bucket = layout.buckets()[i];
      std::uint64_t expected = 0;
      for (std::size_t slot = 0; slot < kSlots; ++slot) {
        const bool below = bucket.last_slot == kOverflowSlot || slot_bound_ns(slot) <= slot_bound_ns(bucket.last_slot);
        expected += below ? row.histograms[0].slots[slot] : 0;
      }
      CHECK(written[i] == "t_wait_seconds_bucket{le=\"" + std::string(bucket.le()) + "\"} " + std::to_string(expected));
    }
    CHECK(written.back() == "t_wait_seconds_count " + std::to_string(total(row.histograms[0])));
  }
}

TEST_CASE("a family's detail says which buckets it has, and all of them count what is below") {
  constexpr Family kWait = kFamilies[1];
  constexpr std::array kDetails{kWait, kWait.with(Detail::coarse), kWait.with(Detail::mean)};
  const BucketLayout layout(0);
  const TargetSeries series(kDetails, {}, layout);
  Row row;
  row.histograms.resize(3);
  for (Histogram& histogram : row.histograms) {
    histogram.slots[slot_of(1'000)] = 3;
    histogram.slots[slot_of(1'000'000)] = 4;
    histogram.slots[slot_of(9'000'000'000)] = 5;
    histogram.sum_ns = 45'004'003'000;
  }
  CHECK(series.lines() == 30 + 13 + 3);
  const std::vector<std::string> coarse = split(lines(series, 1, row));
  REQUIRE(coarse.size() == 13);
  CHECK(coarse[0] == "t_wait_seconds_bucket{le=\"1.52587890625e-05\"} 3");
  CHECK(coarse[3] == "t_wait_seconds_bucket{le=\"0.0009765625\"} 3");
  CHECK(coarse[4] == "t_wait_seconds_bucket{le=\"0.00390625\"} 7");
  CHECK(coarse[9] == "t_wait_seconds_bucket{le=\"4.0\"} 7");
  CHECK(coarse[10] == "t_wait_seconds_bucket{le=\"+Inf\"} 12");
  CHECK(lines(series, 2, row) ==
        "t_wait_seconds_bucket{le=\"+Inf\"} 12\nt_wait_seconds_sum 45.004003\nt_wait_seconds_count 12\n");
}

TEST_CASE("what is absent has no line, and those behind it keep their places") {
  const BucketLayout layout;
  const TargetSeries series(kFamilies, {}, layout);
  Row row = make_row();
  row.values[0] = Value::absent();
  row.histograms[1].absent = true;
  row.histograms[2].slots[0] = 9;
  CHECK(split(lines(series, 0, row)) ==
        std::vector<std::string>{"t_bytes_total{direction=\"receive\"} 18446744073709551615"});
  const std::vector<std::string> poll = split(lines(series, 4, row));
  REQUIRE(poll.size() == layout.lines());
  CHECK(poll.back() == "t_poll_seconds_count{outcome=\"a\\\"b\"} 9");
}

TEST_CASE("label values known at run time: sorted, equal ones added up, only the family's own") {
  const BucketLayout layout;
  const TargetSeries series(kFamilies, kLabels, layout);
  Row row = make_row();
  CHECK(lines(series, 3, row).empty());
  row.dynamic = {dynamic(3, "zeta", 1), dynamic(5, "x", 9),    dynamic(3, "10.0.0.1:80", 2),
                 dynamic(3, "\xff", 3), dynamic(3, "\xfe", 4), dynamic(3, "a\"b", 5)};
  const auto line = [](const std::string& value, int n) {
    return "t_calls_total" + kCommon + ",peer=\"" + value + "\"} " + std::to_string(n) + "\n";
  };
  const std::string expected = line("10.0.0.1:80", 2) + line("a\\\"b", 5) + line("zeta", 1) + line("\uFFFD", 7);
  CHECK(lines(series, 3, row) == expected);

  std::mt19937_64 random(6);
  for (int i = 0; i < 50; ++i) {
    std::shuffle(row.dynamic.begin(), row.dynamic.end(), random);
    REQUIRE(lines(series, 3, row) == expected);
  }

  row.dynamic.push_back(dynamic(5, "x", 1));
  const std::vector<std::string> calls = split(lines(series, 5, row));
  REQUIRE(calls.size() == layout.lines());
  CHECK(calls[26] == "t_call_seconds_bucket" + kCommon + ",peer=\"x\",le=\"64.0\"} 0");
  CHECK(calls[27] == "t_call_seconds_bucket" + kCommon + ",peer=\"x\",le=\"+Inf\"} 10");
  CHECK(calls[28] == "t_call_seconds_sum" + kCommon + ",peer=\"x\"} 0.000001");
  CHECK(calls[29] == "t_call_seconds_count" + kCommon + ",peer=\"x\"} 10");
}

TEST_CASE("without target labels") {
  const BucketLayout layout;
  const TargetSeries series(kFamilies, {}, layout);
  Row row = make_row();
  row.dynamic = {dynamic(3, "p", 1)};
  CHECK(lines(series, 0, row).starts_with("t_bytes_total{direction=\"send\"} 7\n"));
  CHECK(lines(series, 2, row) == "t_rps 0.25\n");
  CHECK(lines(series, 3, row) == "t_calls_total{peer=\"p\"} 1\n");
  CHECK(lines(series, 1, row).starts_with("t_wait_seconds_bucket{le=\"9.5367431640625e-07\"} 0\n"));
}

TEST_CASE("a row that is too short gives fewer lines") {
  const BucketLayout layout;
  const TargetSeries series(kFamilies, kLabels, layout);
  Row row = make_row();
  row.values.resize(1);
  row.histograms.resize(2);
  CHECK(split(lines(series, 0, row)).size() == 1);
  CHECK(lines(series, 2, row).empty());
  CHECK(split(lines(series, 4, row)).size() == layout.lines());
  CHECK(lines(series, 0, Row{}).empty());
}

TEST_CASE("a target has its labels alone, however many families there are") {
  const BucketLayout layout;
  const auto text = std::make_shared<const SeriesText>(kFamilies, layout);
  const TargetSeries series(text, Labels{{"target", "web"}});
  const TargetSeries another(text, Labels{{"target", "another"}});
  CHECK(series.memory() <= 2 * sizeof(R"(target="web")"));
  Row row = make_row();
  CHECK(lines(series, 0, row) == lines(TargetSeries(kFamilies, Labels{{"target", "web"}}, layout), 0, row));
  CHECK(lines(another, 0, row) == lines(TargetSeries(kFamilies, Labels{{"target", "another"}}, layout), 0, row));
}

}  // namespace
}  // namespace tacho::metrics
