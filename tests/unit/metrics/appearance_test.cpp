#include "metrics/appearance.h"

#include <array>
#include <catch2/catch.hpp>
#include <limits>
#include <string>

#include "metrics/family_writer.h"
#include "metrics/proto_family.h"
#include "metrics/series.h"

namespace tacho::metrics {
namespace {

constexpr std::array<std::string_view, 2> kAppearingRoles = {"server", "client"};
constexpr std::array kAppearing{
    Family{"t_core_total", Type::counter, "", "h", "", {}},
    Family{"t_roles_total", Type::counter, "", "h", "role", kAppearingRoles}.on_first_event(),
    Family{"t_core_seconds", Type::histogram, "seconds", "h", "", {}},
    Family{"t_rare_seconds", Type::histogram, "seconds", "h", "", {}}.with(Detail::mean).on_first_event(),
    Family{"t_gauge", Type::gauge, "", "h", "", {}}.on_first_event(),
    Family{"t_fine_seconds", Type::histogram, "seconds", "h", "", {}, true}.with(Detail::mean).on_first_event(),
    Family{"t_calls_total", Type::counter, "", "h", "peer", {}}.on_first_event(),
    Family{"t_last_total", Type::counter, "", "h", "", {}}.on_first_event(),
};

/// Nothing has happened.
Row nothing() {
  Row row;
  row.values.assign(5, Value::count(0));
  row.histograms.resize(2);
  row.fine.resize(1);
  row.dynamic.push_back({.family = 6, .label_value = "db", .value = Value::count(0), .histogram = {}});
  return row;
}

/// The page of one target that is read again and again.
class Reader {
 public:
  explicit Reader(Format format = Format::prometheus_text)
      : writer_({.format = format, .histograms = {}, .window = "10s", .layout = layout_}) {}

  std::string read(Row row) {
    appearance_.apply(kAppearing, row);
    std::string out;
    for (std::size_t family = 0; family < kAppearing.size(); ++family) {
      writer_.begin(headers_, kAppearing, family);
      writer_.add(out, series_, {.labels = {}, .created = {}}, row);
      writer_.end(out);
    }
    return out;
  }

 private:
  BucketLayout layout_{0};
  TargetSeries series_{kAppearing, {}, layout_};
  Appearance appearance_;
  FamilyWriter writer_;
  std::string headers_;
};

bool has(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

TEST_CASE("families of the core are there from the beginning, others with their first event") {
  const std::string page = Reader().read(nothing());
  CHECK(page.starts_with("t_core_total 0\nt_core_seconds_bucket{le=\""));
  CHECK(page.ends_with("\nt_core_seconds_count 0\n"));
}

TEST_CASE("each label value appears by itself, with its true value, and stays") {
  Reader reader;
  (void)reader.read(nothing());
  Row row = nothing();
  row.values[2] = Value::count(3);
  const std::string later = reader.read(row);
  CHECK(has(later, "t_roles_total{role=\"client\"} 3\n"));
  CHECK_FALSE(has(later, "server"));
  CHECK_FALSE(has(later, "t_last_total"));
  CHECK(has(reader.read(row), "t_roles_total{role=\"client\"} 3\n"));
  // No counter falls. If one is read so, it is there all the same, and Prometheus sees the reset.
  CHECK(has(reader.read(nothing()), "t_roles_total{role=\"client\"} 0\n"));
}

TEST_CASE("a gauge that returns to 0 stays") {
  Reader reader;
  Row row = nothing();
  row.values[3] = Value::number(std::numeric_limits<double>::quiet_NaN());
  CHECK_FALSE(has(reader.read(row), "t_gauge"));
  row.values[3] = Value::number(2.5);
  CHECK(has(reader.read(row), "t_gauge 2.5\n"));
  CHECK(has(reader.read(nothing()), "t_gauge 0\n"));
}

TEST_CASE("a value that is not available is no event, and is not reported because it once was") {
  Reader reader;
  Row row = nothing();
  row.values[4] = Value::absent();
  CHECK_FALSE(has(reader.read(row), "t_last"));
  row.values[4] = Value::count(1);
  CHECK(has(reader.read(row), "t_last_total 1\n"));
  row.values[4] = Value::absent();
  CHECK_FALSE(has(reader.read(row), "t_last"));
}

TEST_CASE("a histogram appears with the first observation above 0 and then counts all") {
  Reader reader;
  Row row = nothing();
  row.histograms[1].slots[0] = 7;
  row.fine[0].slots[0] = 7;
  CHECK_FALSE(has(reader.read(row), "t_rare"));
  row.histograms[1].slots[20] = 1;
  row.histograms[1].sum_ns = 40'000;
  const std::string page = reader.read(row);
  CHECK(has(page, "t_rare_seconds_bucket{le=\"+Inf\"} 8\nt_rare_seconds_sum 0.00004\nt_rare_seconds_count 8\n"));
  CHECK_FALSE(has(page, "t_fine"));
  CHECK(has(reader.read(nothing()), "t_rare_seconds_count 0\n"));
  row.fine[0].sum_ns = 1;
  CHECK(has(reader.read(row), "t_fine_seconds_count 7\n"));
}

TEST_CASE("a peer appears with its first call") {
  Reader reader;
  Row row = nothing();
  CHECK_FALSE(has(reader.read(row), "t_calls"));
  row.dynamic[0].value = Value::count(2);
  row.dynamic.push_back({.family = 6, .label_value = "cache", .value = Value::count(0), .histogram = {}});
  const std::string page = reader.read(row);
  CHECK(has(page, "t_calls_total{peer=\"db\"} 2\n"));
  CHECK_FALSE(has(page, "cache"));
}

TEST_CASE("protobuf has the same samples as the text") {
  Reader reader(Format::protobuf);
  CHECK_FALSE(has(reader.read(nothing()), "client"));
  Row row = nothing();
  row.values[2] = Value::count(3);
  row.histograms[1].sum_ns = 1;
  const std::string page = reader.read(row);
  CHECK(has(page, "client"));
  CHECK_FALSE(has(page, "server"));
  CHECK(has(page, "t_rare_seconds"));
  CHECK_FALSE(has(page, "t_fine_seconds"));
  CHECK_FALSE(has(page, "t_gauge"));
}

TEST_CASE("targets appear each by themselves") {
  Reader busy;
  Row row = nothing();
  row.values[4] = Value::count(1);
  CHECK(has(busy.read(row), "t_last_total 1\n"));
  CHECK_FALSE(has(Reader().read(nothing()), "t_last"));
}

}  // namespace
}  // namespace tacho::metrics
