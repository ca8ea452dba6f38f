#include "metrics/escape.h"

#include <utf8.h>

#include <algorithm>
#include <iterator>

namespace tacho::metrics {
namespace {

void append_escaped(std::string& out, std::string_view valid, bool quotes) {
  for (const char c : valid) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '"':
        out += quotes ? "\\\"" : "\"";
        break;
      default:
        out += c;
    }
  }
}

void append_text(std::string& out, std::string_view text, bool quotes) {
  std::string repaired;
  append_escaped(out, valid_utf8(text, repaired), quotes);
}

}  // namespace

std::string_view valid_utf8(std::string_view text, std::string& repaired) {
  if (utf8::is_valid(text.begin(), text.end())) {
    return text;
  }
  repaired.clear();
  utf8::replace_invalid(text.begin(), text.end(), std::back_inserter(repaired));
  return repaired;
}

void append_valid_utf8(std::string& out, std::string_view text) {
  std::string repaired;
  out += valid_utf8(text, repaired);
}

void append_label_value(std::string& out, std::string_view value) {
  append_text(out, value, true);
}

void append_help(std::string& out, std::string_view help, bool quotes) {
  append_text(out, help, quotes);
}

}  // namespace tacho::metrics
