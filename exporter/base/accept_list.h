#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacho {

/// The weight of an entry of an HTTP header that negotiates (RFC 9110 §12.4.2): "0" or "1", and up to three decimals.
/// @return in thousandths, 0 to 1000; nothing for what is no weight
std::optional<int> parse_weight(std::string_view text);

/// One entry of Accept, Accept-Encoding and the like (RFC 9110 §12.5); its names are in lower case.
struct AcceptEntry {
  std::string type;
  std::string subtype;                                          ///< of a media range: what stands behind the slash
  std::vector<std::pair<std::string, std::string>> parameters;  ///< but the weight; quotes are taken off
  int weight = 1000;                                            ///< in thousandths; 0: not acceptable
  bool malformed = false;                                       ///< only `type` and `subtype` are what was read
};

/// The entries of such a header, empty ones left out. Never fails: what is malformed is marked, and ends at its comma.
/// Of a header of more than 2 KiB, five times what Prometheus sends, the whole entries in these count: thousands would
/// take a millisecond.
std::vector<AcceptEntry> parse_accept_list(std::string_view header);

}  // namespace tacho
