#include "endpoints.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

using namespace tacho;
using boundary::Kind;
using boundary::Status;

namespace {

/// Answers everything alike and remembers what it was asked last.
class FakeCollector final : public boundary::Collector {
 public:
  Result<boundary::Answer> ask(const boundary::Question& question) override {
    asked = question;
    if (!there) {
      return fail("nobody is there");
    }
    auto text = boundary::SealedText::create();
    text->append("text");
    REQUIRE(text->seal());
    return boundary::Answer{.status = status, .text = *boundary::MappedText::map(text->descriptor())};
  }
  boundary::Question asked;
  Status status = Status::done;
  bool there = true;
};

struct Served {
  FakeCollector collector;
  std::optional<std::string> stuck;
  std::vector<web::Route> routes = endpoints({.collector = &collector,
                                              .telemetry_path = "/metrics",
                                              .lifecycle = true,
                                              .stuck = [this] { return stuck; },
                                              .blindness = ""});

  [[nodiscard]] const web::Route& route(const std::string& path) const {
    return *std::ranges::find(routes, path, &web::Route::path);
  }
  [[nodiscard]] web::Response get(const std::string& path, const std::string& query = {}) const {
    return route(path).handler({.method = "GET", .path = path, .query = query, .remote = {}, .headers = {}});
  }
};

}  // namespace

TEST_CASE("a page is asked for with its format and its readers") {
  Served served;
  const web::SharedPage& page = *served.route("/metrics").page;
  for (const auto& [accept, kind] : {std::pair{"text/plain", Kind::text_metrics},
                                     {"application/openmetrics-text; version=1.0.0", Kind::openmetrics},
                                     {"application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; "
                                      "encoding=delimited",
                                      Kind::protobuf_metrics}}) {
    const std::string type = page.content_type(
        {.method = "GET", .path = "/metrics", .query = {}, .remote = "10.0.0.1", .headers = {{"Accept", accept}}});
    page.content_type({.method = "GET", .path = "/metrics", .query = {}, .remote = "10.0.0.2", .headers = {}});
    const web::Pieces pieces = page.make(type);
    REQUIRE(pieces.size() == 1);
    CHECK(pieces.front().view() == "text");
    CHECK(served.collector.asked.kind == kind);
    CHECK(served.collector.asked.id_count == 2);
    page.make(type);
    CHECK(served.collector.asked.id_count == 0);
  }
  served.collector.status = Status::failed;
  CHECK_THROWS_AS(page.make("text/plain"), std::runtime_error);
}

TEST_CASE("documents are asked for by numbers") {
  Served served;
  CHECK(served.get("/targets").body == "text");
  CHECK(served.collector.asked.kind == Kind::targets);
  CHECK(served.get("/api/v1/targets", "sort=p99&filter=a+b&limit=3").status == 200);
  CHECK(served.collector.asked.kind == Kind::table);
  CHECK(served.collector.asked.table_query().filter == "a b");
  CHECK(served.get("/api/v1/targets", "filter=" + std::string(1025, 'x')).status == 400);
  CHECK(served.get("/api/v1/history", "since=9&ids=0123456789abcdef,none,00000000000000ff").status == 200);
  CHECK(served.collector.asked.since == 9);
  CHECK(served.collector.asked.id_list() == std::vector<std::uint64_t>{0x0123456789abcdef, 0xff});
  CHECK(served.get("/api/v1/history", "since=-1").status == 400);
  CHECK(served.get("/api/v1/slow", "ids=00000000000000ff").status == 200);
  CHECK(served.collector.asked.kind == Kind::slow);
  CHECK(served.collector.asked.id_list() == std::vector<std::uint64_t>{0xff});
  CHECK(served.get("/api/v1/why", "ids=00000000000000ff").status == 200);
  CHECK(served.collector.asked.kind == Kind::why);
  served.collector.status = Status::missing;
  CHECK(served.get("/api/v1/target", "id=0123456789abcdef").status == 404);
  CHECK(served.collector.asked.kind == Kind::detail);
  served.collector.there = false;
  CHECK_THROWS_AS(served.get("/targets"), std::runtime_error);
}

TEST_CASE("what a reload came to is told") {
  Served served;
  for (const auto& [status, code] :
       {std::pair{Status::done, 200}, {Status::failed, 500}, {Status::busy, 429}, {Status::timeout, 503}}) {
    served.collector.status = status;
    CHECK(served.get("/-/reload").status == code);
    CHECK(served.collector.asked.kind == Kind::reload);
  }
}

TEST_CASE("what is stuck is told at once") {
  Served served;
  CHECK(served.get("/-/healthy").status == 200);
  CHECK(served.get("/-/ready").status == 200);
  CHECK(served.route("/-/healthy").immediate);
  served.stuck = "the main loop is stuck for 12 s";
  CHECK(served.get("/-/healthy").body == "tacho is not well: the main loop is stuck for 12 s\n");
  CHECK(served.get("/-/ready").status == 503);
}
