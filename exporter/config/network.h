#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace tacho::config {

/// A block of addresses. IPv4 stands as IPv4-mapped IPv6 (RFC 4291, 2.5.5.2), so that both families share one table.
struct Network {
  std::array<std::uint8_t, 16> address{};  ///< network byte order; bits beyond the prefix are 0
  unsigned prefix_bits = 0;                ///< 0 … 128; an IPv4 prefix counts 96 more

  bool operator==(const Network&) const = default;
};

/// Reads "10.0.0.0/8", "2001:db8::/32", or one address. The message of an error continues a sentence that starts with
/// the text; bits set beyond the prefix are an error, since they are a typing error more often than not.
Result<Network> parse_network(std::string_view text);

}  // namespace tacho::config
