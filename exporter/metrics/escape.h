#pragma once

#include <string>
#include <string_view>

namespace tacho::metrics {

/// Appends a label value as both text formats spell it between its quotes: `\`, `"` and line feed escaped. Bytes that
/// are not UTF-8 become U+FFFD; without that one bad name would make every scraper refuse the whole exposition.
void append_label_value(std::string& out, std::string_view value);

/// A text without bytes that are not UTF-8: itself, or `repaired`, where they have become U+FFFD.
std::string_view valid_utf8(std::string_view text, std::string& repaired);
void append_valid_utf8(std::string& out, std::string_view text);

/// Appends the text of a HELP line: line feed and `\` escaped, and `"` where `quotes` (OpenMetrics escapes it, in
/// Prometheus text `\"` is an error); bytes that are not UTF-8 as above.
void append_help(std::string& out, std::string_view help, bool quotes);

}  // namespace tacho::metrics
