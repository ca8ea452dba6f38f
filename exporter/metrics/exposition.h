#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "metrics/family.h"

namespace tacho::metrics {

/// Prometheus text 0.0.4, OpenMetrics 1.0 as text, and Prometheus' protobuf: `io.prometheus.client.MetricFamily`, each
/// behind its length, the only one that carries native histograms.
enum class Format : std::uint8_t { prometheus_text, openmetrics, protobuf };
inline constexpr std::array kFormats{Format::prometheus_text, Format::openmetrics, Format::protobuf};

/// The value of Content-Type; Prometheus 3 fails a scrape without one.
std::string_view content_type(Format format);
/// The format that content_type() is of; Prometheus text for any other.
Format format_of(std::string_view content_type);

/// The format that a request's Accept header (several joined by ", ") asks for, by RFC 9110 §12.5.1: the most
/// specific range that matches a format gives its weight, the highest weight wins, 0 excludes. At equal weight
/// OpenMetrics is taken only if it was named, so that browsers and curl get plain text, and protobuf never unless it
/// was named, with its parameters `proto` and `encoding=delimited`; it comes first then. What is malformed is skipped;
/// Prometheus text if nothing acceptable is left.
///
/// `version`: openmetrics-text of version 1.0.0, without one, or older (0.0.1, the draft that Prometheus 2.30
/// asks for) is answered with 1.0.0, the oldest of the standard, as its "Protocol Negotiation" says and as Prometheus'
/// parser takes it; a newer one does not match, nor does text/plain other than 0.0.4. Other parameters (`escaping`
/// of Prometheus 3, `charset`) change nothing: all names are plain ASCII, which every escaping scheme leaves alone.
Format negotiate(std::string_view accept);

/// Appends a family's HELP and TYPE (Prometheus text), or TYPE, UNIT and HELP under the name without `_total`
/// (OpenMetrics). `window` ("10s") replaces each `{window}` in the help. Text formats only. Names ending in `_info` are
/// gauges of value 1: the OpenMetrics type `info` would have the same sample names, and its parsers take the gauge too.
void append_header(std::string& out, const Family& family, Format format, std::string_view window);

/// Ends the exposition: "# EOF" in OpenMetrics, nothing in Prometheus text.
void append_end(std::string& out, Format format);

/// "counter", "gauge" or "histogram".
std::string_view type_name(Type type);

/// `help` with each `{window}` replaced.
std::string expand_window(std::string_view help, std::string_view window);

}  // namespace tacho::metrics
