#include "metrics/exposition.h"

#include <algorithm>

#include "metrics/escape.h"

namespace tacho::metrics {
namespace {

void append_line(std::string& out, std::string_view keyword, std::string_view name, std::string_view text) {
  out.append("# ").append(keyword).append(" ").append(name).append(" ").append(text).append("\n");
}

void append_help_line(std::string& out, std::string_view name, std::string_view help, Format format) {
  if (help.empty()) {
    return;
  }
  out.append("# HELP ").append(name).append(" ");
  append_help(out, help, format == Format::openmetrics);
  out += '\n';
}

}  // namespace

std::string_view content_type(Format format) {
  switch (format) {
    case Format::openmetrics:
      return "application/openmetrics-text; version=1.0.0; charset=utf-8";
    case Format::protobuf:
      return "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
    case Format::prometheus_text:
      break;
  }
  return "text/plain; version=0.0.4; charset=utf-8";
}

Format format_of(std::string_view type) {
  const auto* const found = std::ranges::find(kFormats, type, content_type);
  return found == kFormats.end() ? Format::prometheus_text : *found;
}

void append_header(std::string& out, const Family& family, Format format, std::string_view window) {
  const std::string help = expand_window(family.help, window);
  std::string_view name = family.name;
  if (format == Format::prometheus_text) {
    append_help_line(out, name, help, format);
    append_line(out, "TYPE", name, type_name(family.type));
    return;
  }
  if (family.type == Type::counter) {
    name.remove_suffix(std::string_view("_total").size());
  }
  append_line(out, "TYPE", name, type_name(family.type));
  if (!family.unit.empty()) {
    append_line(out, "UNIT", name, family.unit);
  }
  append_help_line(out, name, help, format);
}

void append_end(std::string& out, Format format) {
  if (format == Format::openmetrics) {
    out += "# EOF\n";
  }
}

std::string_view type_name(Type type) {
  switch (type) {
    case Type::counter:
      return "counter";
    case Type::gauge:
      return "gauge";
    case Type::histogram:
      break;
  }
  return "histogram";
}

std::string expand_window(std::string_view help, std::string_view window) {
  constexpr std::string_view kPlaceholder = "{window}";
  std::string result;
  for (std::size_t at = help.find(kPlaceholder); at != std::string_view::npos; at = help.find(kPlaceholder)) {
    result.append(help.substr(0, at)).append(window);
    help.remove_prefix(at + kPlaceholder.size());
  }
  return result.append(help);
}

}  // namespace tacho::metrics
