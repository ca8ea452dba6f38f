#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/diagnostic.h"

namespace tacho::config {

/// What a file says. `config` is meant for use only while `errors` is empty; warnings do not keep it from use.
struct Loaded {
  std::string file_name;  ///< for format()
  Config config;
  std::vector<Diagnostic> errors;
  std::vector<Diagnostic> warnings;
  bool empty = false;  ///< not a byte in it, as in a file that somebody has opened to write it anew
};

/// Reads YAML 1.2 strictly (keys.cpp says what it may contain) and reports all that is wrong with it, each with line
/// and column. An empty text is the defaults. Never throws.
Loaded load_text(std::string_view yaml, std::string_view file_name);

/// The same from a file, which may be a pipe; one that cannot be read is one error without a line.
Loaded load_file(const std::string& path);

}  // namespace tacho::config
