// Content negotiation: negotiate() of exposition.h.
#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "base/accept_list.h"
#include "metrics/exposition.h"

namespace tacho::metrics {
namespace {

using Parameter = std::pair<std::string, std::string>;

/// What the most specific range that matches a format says of it; the higher weight of equally specific ones.
struct Preference {
  int specificity = -1;
  int weight = 0;
};

/// Of a media range; empty if there is none.
std::string_view parameter(const AcceptEntry& range, std::string_view name) {
  const auto found = std::ranges::find(range.parameters | std::views::reverse, name, &Parameter::first);
  return found == range.parameters.rend() ? std::string_view() : std::string_view(found->second);
}

struct MediaType {
  std::string_view type;
  std::string_view subtype;
  std::string_view version;
};

MediaType media_type(Format format) {
  switch (format) {
    case Format::openmetrics:
      return {"application", "openmetrics-text", "1.0.0"};
    case Format::protobuf:
      return {"application", "vnd.google.protobuf", ""};
    case Format::prometheus_text:
      break;
  }
  return {"text", "plain", "0.0.4"};
}

/// 4: type, subtype and exactly our version match, 3: a version that ours stands in for, 2: type and subtype,
/// 1: type, 0: anything, -1: no match.
int specificity(const AcceptEntry& range, Format format) {
  if (range.type == "*") {
    return 0;
  }
  const MediaType ours = media_type(format);
  if (range.type != ours.type) {
    return -1;
  }
  if (range.subtype == "*") {
    return 1;
  }
  if (range.subtype != ours.subtype) {
    return -1;
  }
  if (format == Format::protobuf) {
    // Whatever else is made of protobuf is something else.
    const bool ours_alone =
        parameter(range, "proto") == "io.prometheus.client.MetricFamily" && parameter(range, "encoding") == "delimited";
    return ours_alone ? 4 : -1;
  }
  const std::string_view version = parameter(range, "version");
  if (version.empty()) {
    return 2;
  }
  if (version == ours.version) {
    return 4;
  }
  return format == Format::openmetrics && version.starts_with("0.") ? 3 : -1;
}

void consider(Preference& best, const AcceptEntry& range, Format format) {
  const int found = specificity(range, format);
  if (found > best.specificity) {
    best = {.specificity = found, .weight = range.weight};
  } else if (found == best.specificity && found >= 0) {
    best.weight = std::max(best.weight, range.weight);
  }
}

}  // namespace

Format negotiate(std::string_view accept) {
  std::array<Preference, kFormats.size()> found;
  for (const AcceptEntry& range : parse_accept_list(accept)) {
    // RFC 9110 §12.5.1: nothing but anything goes with any type.
    if (range.malformed || range.subtype.empty() || (range.type == "*" && range.subtype != "*")) {
      continue;
    }
    for (const Format format : kFormats) {
      consider(found.at(static_cast<std::size_t>(format)), range, format);
    }
  }
  const auto& [text, openmetrics, protobuf] = found;
  const auto named = [](const Preference& format) { return format.specificity >= 2 && format.weight > 0; };
  const bool open = openmetrics.weight > text.weight || (named(openmetrics) && openmetrics.weight == text.weight);
  if (named(protobuf) && protobuf.weight >= (open ? openmetrics : text).weight) {
    return Format::protobuf;
  }
  return open ? Format::openmetrics : Format::prometheus_text;
}

}  // namespace tacho::metrics
