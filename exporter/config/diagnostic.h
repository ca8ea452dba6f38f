#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"

namespace tacho::config {

/// A file with an error is refused, one with a warning is used.
enum class Severity : std::uint8_t { error, warning };

/// One error in a file: where, what, and the remedy (may be empty).
struct Diagnostic {
  Severity severity = Severity::error;
  Location where;
  std::string message;
  std::string hint;
};

/// "file:line:col: error: message (hint)"; without line and column where the line is 0.
std::string format(const Diagnostic& diagnostic, std::string_view file_name);

/// Text of the file for use in a message: 'text', on one line, cut where it is long.
std::string quote(std::string_view text);

/// Collects the errors of one file. Beyond a hundred errors (or warnings) they are only counted: a binary file given by
/// mistake must not flood the terminal.
class Problems {
 public:
  void error(Location where, std::string message, std::string hint = {});
  void warning(Location where, std::string message, std::string hint = {});

  [[nodiscard]] bool any_errors() const { return !errors_.shown.empty(); }

  /// In the order of the file.
  std::vector<Diagnostic> take_errors() { return errors_.take(); }
  std::vector<Diagnostic> take_warnings() { return warnings_.take(); }

 private:
  struct List {
    std::vector<Diagnostic> shown;
    std::size_t more = 0;

    void add(Diagnostic diagnostic);
    std::vector<Diagnostic> take();
  };

  List errors_;
  List warnings_;
};

}  // namespace tacho::config
