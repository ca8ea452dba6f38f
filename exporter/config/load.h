#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/diagnostic.h"

namespace tacho::config {

/// The result of reading a file. `config` may be used only if `errors` is empty; warnings do not prevent its use.
struct Loaded {
  std::string file_name;  ///< for format()
  Config config;
  std::vector<Diagnostic> errors;
  std::vector<Diagnostic> warnings;
  bool empty = false;  ///< the file has no byte, like one that was opened to be written anew
};

/// Reads YAML 1.2 strictly (keys.cpp defines what it may contain) and reports all errors, each with line and column. An
/// empty text is the defaults. Never throws.
Loaded load_text(std::string_view yaml, std::string_view file_name);

/// The same from a file, which may be a pipe; one that cannot be read is one error without a line.
Loaded load_file(const std::string& path);

}  // namespace tacho::config
