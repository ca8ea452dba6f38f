#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "metrics/exposition.h"

namespace tacho::metrics {
namespace {

struct Case {
  const char* accept;
  Format expected;
};

constexpr Format kText = Format::prometheus_text;
constexpr Format kOpen = Format::openmetrics;
constexpr Format kProto = Format::protobuf;

void check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    CAPTURE(c.accept);
    CHECK(negotiate(c.accept) == c.expected);
  }
}

TEST_CASE("content types") {
  CHECK(content_type(kText) == "text/plain; version=0.0.4; charset=utf-8");
  CHECK(content_type(kOpen) == "application/openmetrics-text; version=1.0.0; charset=utf-8");
  CHECK(negotiate(content_type(kText)) == kText);
  CHECK(negotiate(content_type(kOpen)) == kOpen);
  CHECK(content_type(kProto) ==
        "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited");
  for (const Format format : kFormats) {
    CHECK(negotiate(content_type(format)) == format);
    CHECK(format_of(content_type(format)) == format);
  }
  CHECK(format_of("text/html") == kText);
}

TEST_CASE("what scrapers send") {
  check({
      // Prometheus 2.42
      {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
       "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
       kOpen},
      // Prometheus 3
      {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;"
       "version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,"
       "*/*;q=0.2",
       kOpen},
      // Prometheus 3 with scrape_protocols: [PrometheusText1.0.0, PrometheusText0.0.4, OpenMetricsText1.0.0]
      {"text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.4,"
       "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.3,*/*;q=0.2",
       kText},
      // Prometheus 2.30
      {"application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", kOpen},
      // Prometheus before OpenMetrics, vmagent
      {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,"
       "text/plain;version=0.0.4;q=0.3",
       kProto},
      // Prometheus 2.42 with native histograms on
      {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/"
       "openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;"
       "version=0.0.4;q=0.5,*/*;q=0.1",
       kProto},
      // Prometheus 3 with them on
      {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;"
       "escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
       "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
       kProto},
      {"text/plain;version=0.0.4;q=1,*/*;q=0.1", kText},
      // curl, a browser, nothing
      {"*/*", kText},
      {"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", kText},
      {"", kText},
  });
}

TEST_CASE("weights decide") {
  check({
      {"application/openmetrics-text", kOpen},
      {"text/plain", kText},
      {"text/plain,application/openmetrics-text", kOpen},
      {"text/plain;q=0.9,application/openmetrics-text;q=0.8", kText},
      {"text/plain;q=0.8,application/openmetrics-text;q=0.801", kOpen},
      {"application/openmetrics-text;q=0.000", kText},
      {"application/openmetrics-text;q=0,*/*", kText},
      {"application/openmetrics-text;q=0.001", kOpen},
      {"application/openmetrics-text;q=1.000", kOpen},
      {"application/openmetrics-text;q=1.,text/plain;q=0.", kOpen},
      {"*/*;q=0", kText},
      {"text/plain;q=0,application/openmetrics-text;q=0", kText},
      {"image/png", kText},
  });
}

TEST_CASE("the most specific range that matches gives the weight") {
  check({
      {"application/*", kOpen},
      {"text/*", kText},
      {"application/*;q=0.9,text/*;q=0.5", kOpen},
      {"application/*,application/openmetrics-text;q=0.1,text/plain;q=0.2", kText},
      {"text/plain;q=0,*/*", kOpen},
      {"text/*;q=0,*/*;q=0.5", kOpen},
      {"application/openmetrics-text;version=1.0.0;q=0.1,application/openmetrics-text,text/plain;q=0.5", kText},
      {"application/openmetrics-text;version=1.0.0;q=0,application/openmetrics-text;version=0.0.1,text/plain", kText},
      {"application/openmetrics-text;q=0.2,application/openmetrics-text;q=0.7,text/plain;q=0.5", kOpen},
      {"*/*,application/openmetrics-text;q=0.5", kText},
  });
}

TEST_CASE("protobuf goes to who names it, with what it is made of") {
  const std::string named =
      "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
  const auto format = [&named](const std::string& more) { return negotiate(named + more); };
  CHECK(format("") == kProto);
  CHECK(format(",application/openmetrics-text,text/plain") == kProto);
  CHECK(format(";q=0.5,application/openmetrics-text;q=0.5") == kProto);
  CHECK(format(";q=0.5,application/openmetrics-text;q=0.6") == kOpen);
  CHECK(format(";q=0.5,text/plain;q=0.501") == kText);
  CHECK(format(";q=0") == kText);
  CHECK(format(";q=0,*/*") == kText);
  CHECK(format(";q=0.1,*/*;q=0.2") == kText);
  check({
      {"application/vnd.google.protobuf", kText},
      {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily", kText},
      {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text", kText},
      {"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=compact-text", kText},
      {"application/vnd.google.protobuf;proto=io.prometheus.write.v2.Request;encoding=delimited", kText},
      {"application/vnd.google.protobuf;encoding=delimited,application/openmetrics-text;q=0.1", kOpen},
      {"application/*", kOpen},
      {"application/*;q=0.9,text/*;q=0.1", kOpen},
      {"Application/VND.Google.Protobuf ; Proto=\"io.prometheus.client.MetricFamily\" ; Encoding=delimited", kProto},
      {"application/vnd.google.protobuf;encoding=delimited;q=0.7;proto=io.prometheus.client.MetricFamily,*/*;q=0.1",
       kProto},
  });
}

TEST_CASE("versions") {
  check({
      {"application/openmetrics-text;version=2.0.0", kText},
      {"application/openmetrics-text;version=2.0.0,application/openmetrics-text;version=1.0.0;q=0.5", kOpen},
      {"application/openmetrics-text;version=\"1.0.0\"", kOpen},
      {"application/openmetrics-text;version=0.0.1,text/plain;version=0.0.4", kOpen},
      {"text/plain;version=1.0.0,application/openmetrics-text;q=0.1", kOpen},
      {"text/plain;version=1.0.0", kText},
  });
}

TEST_CASE("spelling: case, blanks, empty elements and parameters, quoted strings") {
  check({
      {"APPLICATION/OpenMetrics-Text;VERSION=1.0.0;Q=1, text/plain;q=0.5", kOpen},
      {"  application/openmetrics-text ; version=1.0.0 ; charset=utf-8 ; q=0.9\t,\ttext/plain ; q=0.1 ", kOpen},
      {",, ,application/openmetrics-text,,", kOpen},
      {"application/openmetrics-text;;q=0.1;,text/plain;q=0.5", kText},
      {R"(x/y;a="text/plain, \" ;q=0";q=1,application/openmetrics-text;q=0.1)", kOpen},
      {"application/openmetrics-text;q=0.5;version=1.0.0,text/plain;q=0.4", kOpen},
  });
}

TEST_CASE("malformed elements are skipped, the others count") {
  check({
      {"application/openmetrics-text;q=2", kText},
      {"application/openmetrics-text;q=1.001", kText},
      {"application/openmetrics-text;q=0.1234", kText},
      {"application/openmetrics-text;q=-1", kText},
      {"application/openmetrics-text;q=", kText},
      {"application/openmetrics-text;q", kText},
      {"application/openmetrics-text;q =1", kText},
      {"application/openmetrics-text;version=\"1.0.0", kText},
      {"application/openmetrics-text;version=\"1.0.0\\", kText},
      {"application/openmetrics-text junk", kText},
      {"application/", kText},
      {"/openmetrics-text", kText},
      {"*/openmetrics-text", kText},
      {"application openmetrics-text", kText},
      {"garbage, application/openmetrics-text", kOpen},
      {R"(garbage "x,application/openmetrics-text,\",", text/plain;q=0.5)", kText},
      {"a/b;c=\"d,e\"f,application/openmetrics-text", kOpen},
      {"application/openmetrics-text;q=oops,application/openmetrics-text;q=0.5", kOpen},
      {"\xff\xfe,;;=\"", kText},
      {"@@@", kText},
  });
}

TEST_CASE("nothing that follows undoes an exact range") {
  const std::vector<std::string> pieces = {"application/openmetrics-text",
                                           "application/vnd.google.protobuf",
                                           "text/plain",
                                           "*",
                                           "/",
                                           ";",
                                           ",",
                                           "q=",
                                           "0.5",
                                           "\"",
                                           "\\",
                                           " ",
                                           "x=1",
                                           "=",
                                           std::string(1, '\0'),
                                           "\x80"};
  const std::string wanted = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,";
  const std::string refused = "application/openmetrics-text;version=1.0.0;q=0,";
  std::mt19937_64 random(3);
  std::size_t wrong = 0;
  std::size_t openmetrics = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string accept;
    for (std::size_t n = random() % 12; n > 0; --n) {
      accept += pieces[random() % pieces.size()];
    }
    openmetrics += negotiate(accept) == kOpen ? 1U : 0U;
    wrong += negotiate(wanted + accept) == kOpen && negotiate(refused + accept) == kText ? 0U : 1U;
  }
  CHECK(wrong == 0);
  CHECK(openmetrics > 0);
  CHECK(openmetrics < 20'000);
}

}  // namespace
}  // namespace tacho::metrics
