#include "metrics/document.h"

#include "metrics/exposition.h"

namespace tacho::metrics {
namespace {

/// Text of a table cell: a bar would end it, a line feed the table.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') {
      result += "\\|";
    } else {
      result += c == '\n' ? ' ' : c;
    }
  }
  return result;
}

std::string label_cell(const Family& family) {
  if (family.label.empty()) {
    return "";
  }
  std::string result = "`" + std::string(family.label) + "`";
  for (std::size_t i = 0; i < family.values.size(); ++i) {
    result.append(i == 0 ? " = " : ", ").append(cell(family.values[i]));
  }
  return result;
}

std::string_view bucket_cell(const Family& family) {
  if (family.type != Type::histogram) {
    return "";
  }
  switch (family.detail) {
    case Detail::coarse:
      return "coarse";
    case Detail::mean:
      return "mean";
    case Detail::full:
      break;
  }
  return "full";
}

}  // namespace

std::string metrics_markdown(std::string_view title, std::span<const Family> families) {
  std::string out =
      "## " + std::string(title) +
      "\n\n| family | type | buckets | unit | labels | appears | meaning |\n|---|---|---|---|---|---|---|\n";
  for (const Family& family : families) {
    out.append("| `").append(family.name).append("` | ").append(type_name(family.type)).append(" | ");
    out.append(bucket_cell(family)).append(" | ").append(family.unit).append(" | ").append(label_cell(family));
    out.append(" | ").append(family.appears == Appears::first_event ? "first event" : "").append(" | ");
    out.append(cell(expand_window(family.help, "the configured window"))).append(" |\n");
  }
  return out;
}

}  // namespace tacho::metrics
