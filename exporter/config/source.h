#pragma once

#include <string_view>
#include <vector>

#include "config/diagnostic.h"

namespace tacho::config {

/// The largest configuration file read, in bytes: room for some 10 000 targets.
inline constexpr std::size_t kMaxFileSize = std::size_t{1} << 20;

/// The text of a file without its byte order mark, for turning byte offsets into what an editor shows.
class Source {
 public:
  /// `text` must outlive the source.
  explicit Source(std::string_view text);

  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::size_t line_count() const { return line_starts_.size(); }
  [[nodiscard]] std::string_view line(std::size_t index) const;

  /// Line and column from 1, the column in characters; arguments count from 0, the column in bytes (as yaml-cpp does);
  /// beyond the end they mean the end.
  [[nodiscard]] Location at(std::size_t line, std::size_t column) const;

 private:
  std::string_view text_;
  std::vector<std::size_t> line_starts_;
  std::vector<std::size_t> continuations_;  // offsets of UTF-8 continuation bytes: columns do not count them
};

/// Reports what the YAML library would silently misread: bytes that are not UTF-8, control characters, tabs in the
/// indentation, %-directives, files too large. False if there was any.
bool check_source(const Source& source, Problems& problems);

}  // namespace tacho::config
