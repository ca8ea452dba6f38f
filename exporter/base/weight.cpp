#include "base/weight.h"

namespace tacho {

std::optional<int> parse_weight(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1') || (text.size() > 1 && text[1] != '.')) {
    return std::nullopt;
  }
  int weight = (text[0] - '0') * 1000;
  int unit = 100;
  text.remove_prefix(text.size() > 1 ? 2 : 1);
  for (const char c : text) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    weight += (c - '0') * unit;
    unit /= 10;
  }
  return weight <= 1000 ? std::optional(weight) : std::nullopt;
}

}  // namespace tacho
