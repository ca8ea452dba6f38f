#pragma once

#include <optional>
#include <string_view>

namespace tacho {

/// The weight of an entry of an HTTP header that negotiates (RFC 9110 §12.4.2): "0" or "1", and up to three decimals.
/// @return in thousandths, 0 to 1000; nothing for what is no weight
std::optional<int> parse_weight(std::string_view text);

}  // namespace tacho
