#include "web/message.h"

#include <algorithm>

#include "base/ascii.h"

namespace tacho::web {

bool same_name(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, lower, lower);
}

std::optional<std::string> Request::header(std::string_view name) const {
  const auto found = std::ranges::find_if(headers, [&](const auto& each) { return same_name(each.first, name); });
  return found == headers.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tacho::web
