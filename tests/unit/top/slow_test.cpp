#include "top/slow.h"

#include <catch2/catch.hpp>

#include "page/json.h"

using namespace tacho;
using top::SlowRow;

namespace {

scrape::SlowView view() {
  probes::SlowRequest request;
  request.ended_ns = 3'000'000'000;
  request.duration_ns = 200'000'000;
  request.mode = "same_thread";
  request.parts_ns[TACHO_PART_QUEUE] = 50'000'000;
  request.parts_ns[TACHO_PART_SLEEP] = 150'000'000;
  request.client = "10.0.0.7:4711";
  request.bytes = 148;
  request.reply_bytes = 70'000;
  request.thread_name = "we\x1b";
  request.thread = 42;
  probes::SlowRequest calling;
  calling.ended_ns = 4'000'000'000;
  calling.duration_ns = 1'000'000;
  calling.mode = "handed_over";
  calling.parts_ns[TACHO_PART_NETWORK] = 1'000'000;
  calling.calls = 2;
  calling.calls_ns = 900'000;
  calling.longest_call_ns = 600'000;
  calling.longest_call_peer = "db:5432";
  return {
      .time = {"feed", 7}, .now_ns = 5'000'000'000, .targets = {{"00ff", "web", {request, calling}}, {"01", "b", {}}}};
}

}  // namespace

TEST_CASE("what the server tells of slow requests is what the terminal shows") {
  const auto targets = top::parse_slowest(page::slow_json(view()));
  REQUIRE(targets);
  REQUIRE(targets->size() == 2);
  CHECK(targets->at(0).id == "00ff");
  CHECK(targets->at(1).requests.empty());
  REQUIRE(targets->at(0).requests.size() == 2);
  const SlowRow& row = targets->at(0).requests[0];
  CHECK(row.age == 2);
  CHECK(row.duration == 0.2);
  REQUIRE(row.parts.size() == 2);
  CHECK(row.parts[0].name == "queue");
  CHECK(row.parts[1].seconds == 0.15);
  CHECK(top::bar(row, 8) == "qqssssss");
  const auto lines = top::slow_lines(targets->at(0).requests);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].starts_with("AGE"));
  CHECK(lines[0].ends_with("CALLS"));
  CHECK(lines[1].find("200 ms") != std::string::npos);
  CHECK(lines[1].find("sleep 75 %") != std::string::npos);
  CHECK(lines[1].find("we\\x1b 42") != std::string::npos);
  CHECK(lines[1].ends_with("10.0.0.7:4711  148 → 70000"));
  CHECK(lines[2].ends_with("2 in 900 µs, longest 600 µs to db:5432"));
}

TEST_CASE("a bar has its width, whatever the parts are") {
  SlowRow row;
  row.duration = 1;
  CHECK(top::bar(row, 5) == ".....");
  row.parts = {{"cpu", 0.5}};
  CHECK(top::bar(row, 4) == "CC..");
  row.parts = {{"cpu", 0.7}, {"lock", 0.7}};
  CHECK(top::bar(row, 10) == "CCCCCCClll");
  row.parts = {{"of a later tacho", 1}};
  CHECK(top::bar(row, 3) == "???");
  row.duration = 0;
  CHECK(top::bar(row, 3).size() == 3);
}

TEST_CASE("every part has a letter of its own") {
  const std::string legend = top::slow_legend();
  for (const std::string_view name : probes::kPartNames) {
    CAPTURE(name);
    CHECK(legend.find(" " + std::string(name)) != std::string::npos);
  }
}

TEST_CASE("another program's answer about slow requests is refused") {
  for (const char* body : {"", "[]", "{}", R"({"targets": 1})", R"({"targets": [{"id": 3}]})",
                           R"({"targets": [{"id": "a", "requests": [{}]}]})"}) {
    CAPTURE(body);
    CHECK_FALSE(top::parse_slowest(body));
  }
}
