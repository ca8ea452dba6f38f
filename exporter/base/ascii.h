#pragma once

namespace tacho {

/// A letter of ASCII in lower case; everything else as it is, whatever the locale.
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace tacho
