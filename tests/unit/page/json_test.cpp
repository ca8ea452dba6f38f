#include "page/json.h"

#include <catch2/catch.hpp>
#include <limits>
#include <nlohmann/json.hpp>

using namespace tacho;
using namespace tacho::page;

namespace {

const std::string kHostile = "\"><script>alert('x')</script>&\\\n\t\x01";
const std::string kInvalid = std::string("a\xff\xc3(\xf0\x80\x80\x80z", 9);
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

probes::Dependency peer(const std::string& name, std::uint64_t calls) {
  probes::Dependency dependency{.peer = name, .duration = {}};
  dependency.duration.slots[metrics::slot_of(1'000'000)] = calls;
  return dependency;
}

scrape::TableRow row_of(const std::string& name) {
  scrape::TableRow row;
  row.id = "0123456789abcdef";
  row.summary.name = name;
  row.summary.labels = {{"target", name}, {"team", name}};
  row.recent = {.rate = 1234.5678, .p50 = 0.00123456, .p99 = kNone, .queue_share = 0.25, .idle_share = kNone};
  row.last = {.rate = 3, .p50 = kNone, .p99 = kNone, .queue_share = kNone, .idle_share = kNone};
  return row;
}

nlohmann::json table(const scrape::TableRow& row) {
  scrape::TableView view;
  view.time = {"feed", 7};
  view.targets = 9;
  view.matched = 1;
  view.rows = {row};
  return nlohmann::json::parse(table_json(view, {row.summary.name}));
}

}  // namespace

TEST_CASE("a row has four digits a number, and null for what is not known") {
  const auto document = table(row_of("web"));
  CHECK(document.at("instance") == "feed");
  CHECK(document.at("tick") == 7);
  CHECK(document.at("absent") == nlohmann::json{"web"});
  const auto& row = document.at("rows").at(0);
  CHECK(row.at("target") == "web");
  CHECK(row.at("labels") == nlohmann::json{{"team", "web"}});
  CHECK(row.at("rate") == 1235);
  CHECK(row.at("last_rate") == 3);
  CHECK(row.at("p50") == 0.001235);
  CHECK(row.at("p99").is_null());
  CHECK(row.at("queue_share") == 0.25);
  CHECK(row.at("idle_share").is_null());
}

TEST_CASE("hostile names come back as they were, what is no UTF-8 is replaced") {
  const auto hostile = table(row_of(kHostile));
  CHECK(hostile.at("rows").at(0).at("target") == kHostile);
  CHECK(hostile.at("rows").at(0).at("labels").at("team") == kHostile);
  const auto name = table(row_of(kInvalid)).at("rows").at(0).at("target").get<std::string>();
  CHECK(name.find("\uFFFD") != std::string::npos);
  CHECK(name.ends_with('z'));
}

TEST_CASE("of many peers the table names the three that are called most") {
  scrape::TableRow row = row_of("web");
  for (int i = 0; i < 5; ++i) {
    row.summary.sockets.dependencies.push_back(
        peer("10.0.0." + std::to_string(i) + ":1", static_cast<std::uint64_t>(i)));
  }
  const auto shown = table(row).at("rows").at(0);
  CHECK(shown.at("peers") == 5);
  REQUIRE(shown.at("dependencies").size() == 3);
  CHECK(shown.at("dependencies").at(0).at("peer") == "10.0.0.4:1");
  CHECK(shown.at("dependencies").at(0).at("calls") == 4);
  scrape::DetailView detail;
  detail.row = row;
  CHECK(nlohmann::json::parse(detail_json(detail)).at("target").at("dependencies").size() == 5);
}

TEST_CASE("a target in detail has its points, columns, histogram, hooks and losses") {
  scrape::DetailView view;
  view.row = row_of("web");
  view.recent_durations.slots[metrics::fine_slot_of(1'000'000)] = 5;
  view.recent_durations.slots.back() = 1;
  view.points = {view.row.recent, view.row.last};
  view.columns.resize(2);
  view.columns[1][3] = 17;
  view.losses = {{"socket", "map_full", 2}};
  const auto document = nlohmann::json::parse(detail_json(view));
  CHECK(document.at("points").at("rate") == nlohmann::json{1235, 3});
  CHECK(document.at("points").at("p50").at(1).is_null());
  CHECK(document.at("heat").at("bounds").size() == metrics::kHeatRows);
  CHECK(document.at("heat").at("bounds").at(0) == 9.537e-7);
  CHECK(document.at("heat").at("bounds").at(1) == 1.907e-6);
  CHECK(document.at("heat").at("bounds").back().is_null());
  CHECK(document.at("heat").at("columns").at(1).at(3) == 17);
  CHECK(document.at("recent_durations").size() == 2);
  CHECK(document.at("recent_durations").at(1).at(0).is_null());
  CHECK(document.at("losses").at(0) == nlohmann::json{{"probe", "socket"}, {"reason", "map_full"}, {"events", 2}});
}

TEST_CASE("a history is the rates of those asked for") {
  scrape::HistoryView view;
  view.time = {"feed", 3};
  view.targets = {{"0123456789abcdef", {row_of("web").recent}}};
  const auto document = nlohmann::json::parse(history_json(view));
  CHECK(document.at("rates").at("0123456789abcdef") == nlohmann::json{1235});
}
