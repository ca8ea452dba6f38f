#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"

/// "line:column message" of each, in the order reported.
inline std::vector<std::string> brief(const std::vector<tacho::config::Diagnostic>& diagnostics) {
  std::vector<std::string> out;
  for (const auto& [severity, where, message, hint] : diagnostics) {
    out.push_back(std::to_string(where.line) + ':' + std::to_string(where.column) + ' ' + message);
  }
  return out;
}

inline std::vector<std::string> errors_of(std::string_view yaml) {
  return brief(tacho::config::load_text(yaml, "test.yaml").errors);
}

/// The configuration of a text that has nothing wrong with it.
inline tacho::config::Config good(std::string_view yaml) {
  const auto loaded = tacho::config::load_text(yaml, "test.yaml");
  CHECK(brief(loaded.errors).empty());
  CHECK(brief(loaded.warnings).empty());
  return loaded.config;
}
