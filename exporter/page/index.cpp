#include <algorithm>

#include "page/assets.h"

namespace tacho::page {
namespace {

/// Stands in index.html for the path of the metrics.
constexpr std::string_view kTelemetryPath = "{{telemetry_path}}";

/// As the value of an attribute. The path is printable and has no space (see the command line's checks).
std::string escape_attribute(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

std::string index_html(std::string_view telemetry_path) {
  const auto found = std::ranges::find(assets(), "index.html", &Asset::name);
  std::string html(found == assets().end() ? "" : found->body);
  // Relative, so that the page also works below a prefix of a proxy.
  const std::string path = "." + escape_attribute(telemetry_path);
  for (std::size_t at = html.find(kTelemetryPath); at != std::string::npos; at = html.find(kTelemetryPath, at)) {
    html.replace(at, kTelemetryPath.size(), path);
    at += path.size();
  }
  return html;
}

}  // namespace tacho::page
