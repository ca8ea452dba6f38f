#include "top/frame.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "page/json.h"

using namespace tacho;
using tacho::top::parse_frame;

TEST_CASE("what the server writes is what top reads") {
  scrape::TableView view;
  view.time = {"feed", 7};
  view.targets = 9;
  view.matched = 1;
  view.rate = 12;
  view.lost = 3;
  view.unhooked = 1;
  scrape::TableRow row;
  row.id = "0123456789abcdef";
  row.summary.name = "web\x1b[2J";
  row.summary.labels = {{"target", "web"}, {"team", "edge\n"}};
  row.summary.live = false;
  row.summary.conditions = {"no_poll", "lost_events"};
  row.summary.sockets.dependencies = {{0, "10.0.0.7:5432", {}, 0}, {1, "10.0.0.8:5432", {}, 0}};
  row.recent = {.rate = 12, .p50 = 0.5, .p99 = NAN, .queue_share = 0.25, .idle_share = NAN};
  view.rows = {row};
  const auto frame = parse_frame(page::table_json(view, {"later"}));
  REQUIRE(frame);
  CHECK(frame->instance == "feed");
  CHECK(frame->tick == 7);
  CHECK(frame->targets == 9);
  CHECK(frame->matched == 1);
  CHECK(frame->lost_events == 3);
  CHECK(frame->unattached_hooks == 1);
  CHECK(frame->absent == std::vector<std::string>{"later"});
  REQUIRE(frame->rows.size() == 1);
  const auto& read = frame->rows[0];
  CHECK(read.name == "web\\x1b[2J team=edge\\n (ended)");
  CHECK(read.rate == 12);
  CHECK(read.p50 == 0.5);
  CHECK(std::isnan(read.p99));
  CHECK(std::isnan(read.idle_share));
  CHECK(read.conditions == "no_poll lost_events");
  CHECK(read.calls_to == "10.0.0.7:5432 +1");
  CHECK(read.in_flight == 0);
  view.rows[0].summary.sockets.knows_in_flight = false;
  CHECK_FALSE(parse_frame(page::table_json(view, {}))->rows.at(0).in_flight);
}

TEST_CASE("another program's answer is refused") {
  for (const char* body : {"", "hello", "[]", "{}", R"({"rows": 1})", "{\"instance\": 1}"}) {
    CAPTURE(body);
    const auto refused = parse_frame(body);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("another version of tacho") != std::string::npos);
  }
}
