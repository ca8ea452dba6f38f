#include "config/node.h"

#include <algorithm>
#include <array>

namespace tacho::config {
namespace {

constexpr std::string_view kDigits = "0123456789";

/// Cuts characters of `set` off the front of `rest`; whether there were any.
bool cut_all(std::string_view& rest, std::string_view set) {
  const std::size_t end = std::min(rest.find_first_not_of(set), rest.size());
  rest.remove_prefix(end);
  return end > 0;
}

bool cut_one(std::string_view& rest, std::string_view set) {
  const bool found = !rest.empty() && set.contains(rest[0]);
  rest.remove_prefix(found ? 1 : 0);
  return found;
}

bool contains(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

const Node* Node::find(std::string_view name) const {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].kind == Kind::scalar && keys[i].text == name) {
      return &items[i];
    }
  }
  return nullptr;
}

PlainKind plain_kind(std::string_view text) {
  static constexpr std::array<std::string_view, 6> kBooleans{"true", "True", "TRUE", "false", "False", "FALSE"};
  static constexpr std::array<std::string_view, 6> kSpecial{".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
  if (contains(kBooleans, text)) {
    return PlainKind::boolean;
  }
  for (const auto& [prefix, digits] : {std::pair{"0x", "0123456789abcdefABCDEF"}, std::pair{"0o", "01234567"}}) {
    if (text.starts_with(prefix) && text.size() > 2 && text.find_first_not_of(digits, 2) == std::string_view::npos) {
      return PlainKind::integer;
    }
  }
  std::string_view rest = text;
  cut_one(rest, "+-");
  if (contains(kSpecial, rest)) {
    return PlainKind::real;
  }
  const bool whole = cut_all(rest, kDigits);
  if (whole && rest.empty()) {
    return PlainKind::integer;
  }
  const bool fraction = cut_one(rest, ".") && cut_all(rest, kDigits);
  if (!whole && !fraction) {
    return PlainKind::text;
  }
  if (cut_one(rest, "eE")) {
    cut_one(rest, "+-");
    if (!cut_all(rest, kDigits)) {
      return PlainKind::text;
    }
  }
  return rest.empty() ? PlainKind::real : PlainKind::text;
}

std::string_view describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::mapping:
      return "a mapping";
    case Node::Kind::scalar:
      break;
  }
  if (!node.plain) {
    return "text in quotes";
  }
  switch (plain_kind(node.text)) {
    case PlainKind::integer:
    case PlainKind::real:
      return "a number";
    case PlainKind::boolean:
      return "a truth value";
    case PlainKind::text:
      break;
  }
  return "text";
}

}  // namespace tacho::config
