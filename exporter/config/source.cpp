#include "config/source.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"

namespace tacho::config {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xc0) == 0x80;
}

bool is_forbidden_control(std::string_view rest) {
  const auto c = static_cast<unsigned char>(rest[0]);
  if (c == '\r') {
    return !rest.starts_with("\r\n");
  }
  return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f;
}

/// The first byte of the line that is no text; one error a line is enough.
bool check_characters(const Source& source, std::size_t number, Problems& problems) {
  const std::string_view line = source.line(number);
  for (std::size_t i = 0; i < line.size();) {
    const std::string_view rest = line.substr(i);
    const std::size_t length = utf8_sequence(rest);
    if (length == 0) {
      problems.error(source.at(number, i), "not UTF-8: byte " + printable(rest.substr(0, 1)), "save the file as UTF-8");
      return false;
    }
    if (is_forbidden_control(rest)) {
      problems.error(source.at(number, i), "control character " + printable(rest.substr(0, 1)), "remove it");
      return false;
    }
    i += length;
  }
  return true;
}

bool check_start(const Source& source, std::size_t number, Problems& problems) {
  const std::string_view line = source.line(number);
  if (line.starts_with('%')) {
    problems.error(source.at(number, 0), "YAML directives are not supported", "remove the line");
    return false;
  }
  const std::size_t indentation = std::min(line.find_first_not_of(" \t"), line.size());
  const std::size_t tab = line.substr(0, indentation).find('\t');
  if (tab != std::string_view::npos) {
    problems.error(source.at(number, tab), "tab in the indentation", "indent with spaces");
    return false;
  }
  return true;
}

}  // namespace

Source::Source(std::string_view text)
    : text_(text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text), line_starts_{0} {
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') {
      line_starts_.push_back(i + 1);
    } else if (is_continuation(text_[i])) {
      continuations_.push_back(i);
    }
  }
}

std::string_view Source::line(std::size_t index) const {
  const std::size_t start = line_starts_[index];
  const std::size_t end = index + 1 < line_starts_.size() ? line_starts_[index + 1] : text_.size();
  return text_.substr(start, end - start);
}

Location Source::at(std::size_t line, std::size_t column) const {
  const std::size_t index = std::min(line, line_starts_.size() - 1);
  const std::size_t length = this->line(index).size();
  const std::size_t bytes = line == index ? std::min(column, length) : length;
  // Searched, not counted: a file may be one long line, and every value in it has a place.
  const auto until = [this](std::size_t offset) { return std::ranges::lower_bound(continuations_, offset); };
  const auto continued = until(line_starts_[index] + bytes) - until(line_starts_[index]);
  return {.line = static_cast<int>(index + 1), .column = 1 + static_cast<int>(bytes) - static_cast<int>(continued)};
}

bool check_source(const Source& source, Problems& problems) {
  if (source.text().size() > kMaxFileSize) {
    problems.error({.line = 1, .column = 1}, "the file is larger than " + std::to_string(kMaxFileSize) + " bytes",
                   "is it a configuration of tacho?");
    return false;
  }
  bool good = true;
  for (std::size_t i = 0; i < source.line_count(); ++i) {
    good = check_characters(source, i, problems) && check_start(source, i, problems) && good;
  }
  return good;
}

}  // namespace tacho::config
