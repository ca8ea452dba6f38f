#include "metrics/unseen.h"

#include <array>
#include <catch2/catch.hpp>
#include <set>
#include <string_view>
#include <vector>

using namespace tacho::metrics;

namespace {

using Hooks = std::string_view;
constexpr std::array kBoth{Hooks{"a"}, Hooks{"b"}};
constexpr std::array kOne{Hooks{"b"}};
constexpr std::array<std::string_view, 2> kDirections{"send", "receive"};

const std::array kFamilies{
    Family{"tacho_plain_total", Type::counter, "", "A.", "", {}},
    Family{"tacho_each_total", Type::counter, "", "A.", "direction", kDirections}.each_seen_by(kBoth),
    Family{"tacho_all_seconds", Type::histogram, "seconds", "A.", "", {}}.seen_by(kBoth),
    Family{"tacho_peer_total", Type::counter, "", "A.", "peer", {}}.seen_by(kBoth),
    Family{"tacho_fine_seconds", Type::histogram, "seconds", "A.", "", {}, true}.seen_by(kOne),
    Family{"tacho_other_total", Type::counter, "", "A.", "peer", {}},
    Family{"tacho_last", Type::gauge, "", "A.", "", {}}.seen_by(kOne)};

/// Which samples are left where hooks are missing: values, histograms, fine ones, those by peer.
std::array<std::vector<bool>, 4> left_without(const std::set<std::string_view>& missing) {
  Row row;
  row.values.assign(4, Value::count(0));
  row.histograms.resize(1);
  row.fine.resize(1);
  row.dynamic = {{3, "one", Value::count(1), {}}, {5, "two", Value::count(1), {}}};
  Unseen(kFamilies, [&missing](std::string_view hook) { return missing.contains(hook); }).hide(row);
  std::array<std::vector<bool>, 4> left;
  for (const Value& value : row.values) {
    left[0].push_back(value.kind != Value::Kind::absent);
  }
  left[1].push_back(!row.histograms[0].absent);
  left[2].push_back(!row.fine[0].absent);
  for (const DynamicSample& sample : row.dynamic) {
    left[3].push_back(sample.family == 5);
  }
  return left;
}

using Left = std::array<std::vector<bool>, 4>;

}  // namespace

TEST_CASE("where all hooks are attached nothing is left out") {
  CHECK(left_without({}) == Left{{{true, true, true, true}, {true}, {true}, {false, true}}});
}

TEST_CASE("without one of its hooks a family is absent, and of one by hook the hook's own sample") {
  CHECK(left_without({"a"}) == Left{{{true, false, true, true}, {false}, {true}, {true}}});
  CHECK(left_without({"b"}) == Left{{{true, true, false, false}, {false}, {false}, {true}}});
  CHECK(left_without({"a", "b"}) == Left{{{true, false, false, false}, {false}, {false}, {true}}});
}
