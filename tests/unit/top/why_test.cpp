#include "top/why.h"

#include <array>
#include <catch2/catch.hpp>

#include "page/json.h"

using namespace tacho;

namespace {

scrape::Waits waits(double lock) {
  scrape::Waits waits;
  waits.seconds = 10;
  waits.requests = 500;
  waits.all = {.requests = 500, .seconds = 0.001 + lock, .parts = {}};
  waits.all.parts[TACHO_PART_CPU] = 0.001;
  waits.all.parts[TACHO_PART_LOCK] = lock;
  return waits;
}

scrape::WhyView why_view() {
  scrape::WhyView::Target target{.id = "00ff", .name = "web", .diagnosis = {}, .explanation = {}};
  target.diagnosis.verdict = scrape::Diagnosis::Verdict::slower;
  target.diagnosis.periods = {.now = waits(0.003), .slow = {}, .five_minutes = waits(0), .hour = {}};
  target.diagnosis.periods.slow = {
      .mean = {.requests = 5, .seconds = 0.03, .parts = {}}, .seconds = 10, .threshold = 0.02};
  target.diagnosis.periods.slow.mean.parts[TACHO_PART_DISK] = 0.03;
  target.diagnosis.cause.emplace();
  target.diagnosis.cause->part = TACHO_PART_LOCK;
  target.diagnosis.cause->seconds = 0.003;
  const std::array<std::string_view, 1> doubts{"lost_events"};
  target.explanation = scrape::explain(target.diagnosis, {{"target", "we\x1b"}}, "", doubts);
  return {.time = {"feed", 7}, .targets = {target}};
}

}  // namespace

TEST_CASE("what the server tells of waits is what the terminal shows") {
  const std::string document = page::why_json(why_view());
  CHECK(document.find(R"("doubts":["lost_events"])") != std::string::npos);
  const auto targets = top::parse_why(document);
  REQUIRE(targets);
  REQUIRE(targets->size() == 1);
  const top::WhyTarget& target = targets->front();
  CHECK(target.id == "00ff");
  CHECK(target.parts == std::vector<std::string>{"cpu", "lock", "disk"});
  REQUIRE(target.means.size() == 3);
  CHECK(target.means[0].parts == std::vector<double>{0.001, 0.003, 0});
  CHECK(target.means[1].title == "SLOWER THAN 20.0 ms");
  CHECK(target.means[2].title == "5 MIN BEFORE");
  const auto lines = top::why_lines(target);
  CHECK(lines[0] ==
        "Requests take 4.00 ms, 4.0 times as long as in the 10 s before: for 3.00 ms more they wait for a lock or for "
        "another thread. Doubtful: lost_events.");
  CHECK(lines[2].starts_with("MEAN OF A REQUEST  NOW"));
  CHECK(lines[4].starts_with("lock               3.00 ms  75 %"));
  CHECK(lines[6].starts_with("in all             4.00 ms        30.0 ms"));
  CHECK(lines[7] == "requests/s         50.0                                       50.0");
  CHECK(lines[9].starts_with("look at: Who holds it"));
  CHECK(lines[10].find("we\\x1b") != std::string::npos);
}

TEST_CASE("another program's answer about waits is refused") {
  for (const char* body : {"", "[]", "{}", R"({"targets": 1})", R"({"targets": [{"id": 3}]})",
                           R"({"targets": [{"id": "a", "sentence": "", "next": "", "evidence": []}]})"}) {
    CAPTURE(body);
    CHECK_FALSE(top::parse_why(body));
  }
}
