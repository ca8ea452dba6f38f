#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace tacho::targets {

/// A whole text that is a number as printf writes it: digits without a leading zero.
inline std::optional<std::uint64_t> plain_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool leading_zero = text.size() > 1 && text.front() == '0';
  return status == std::errc() && rest == text.data() + text.size() && !leading_zero ? std::optional(value)
                                                                                     : std::nullopt;
}

}  // namespace tacho::targets
