#include "metrics/exposition.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>

namespace tacho::metrics {
namespace {

constexpr std::array<std::string_view, 2> kDirections = {"send", "receive"};
constexpr Family kBytes{"tacho_socket_bytes_total", Type::counter, "bytes",
                        "Payload \"bytes\".",       "direction",   kDirections};
constexpr Family kRps{"tacho_observed_rps", Type::gauge, "", "Over {window}, not {window}s.", "", {}};
constexpr Family kPeer =
    Family{"tacho_wait_seconds", Type::histogram, "seconds", "a | b", "peer", {}}.with(Detail::coarse).on_first_event();

std::string header(const Family& family, Format format) {
  std::string out;
  append_header(out, family, format, "10s");
  return out;
}

TEST_CASE("headers of Prometheus text: HELP, TYPE, full name") {
  CHECK(header(kBytes, Format::prometheus_text) ==
        "# HELP tacho_socket_bytes_total Payload \"bytes\".\n# TYPE tacho_socket_bytes_total counter\n");
  CHECK(header(kRps, Format::prometheus_text) ==
        "# HELP tacho_observed_rps Over 10s, not 10ss.\n# TYPE tacho_observed_rps gauge\n");
}

TEST_CASE("headers of OpenMetrics: TYPE, UNIT, HELP, a counter without _total") {
  CHECK(header(kBytes, Format::openmetrics) ==
        "# TYPE tacho_socket_bytes counter\n# UNIT tacho_socket_bytes bytes\n"
        "# HELP tacho_socket_bytes Payload \\\"bytes\\\".\n");
  CHECK(header(kRps, Format::openmetrics) ==
        "# TYPE tacho_observed_rps gauge\n# HELP tacho_observed_rps Over 10s, not 10ss.\n");
  CHECK(header(kPeer, Format::openmetrics) ==
        "# TYPE tacho_wait_seconds histogram\n# UNIT tacho_wait_seconds seconds\n# HELP tacho_wait_seconds a | b\n");
}

TEST_CASE("a family without help has no such line") {
  constexpr Family kBare{"a_total", Type::counter, "", "", "", {}};
  CHECK(header(kBare, Format::prometheus_text) == "# TYPE a_total counter\n");
  CHECK(header(kBare, Format::openmetrics) == "# TYPE a counter\n");
}

TEST_CASE("the end") {
  std::string out;
  append_end(out, Format::prometheus_text);
  CHECK(out.empty());
  append_end(out, Format::openmetrics);
  CHECK(out == "# EOF\n");
}

}  // namespace
}  // namespace tacho::metrics
