#include "config/types.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "config/suggest.h"
#include "config/units.h"

namespace tacho::config {
namespace detail {

std::optional<std::uint64_t> read_number(const Node& node, std::string_view summary, const Context& context) {
  if (node.kind != Node::Kind::scalar || plain_kind(node.text) != PlainKind::integer) {
    context.wrong_type(node, summary);
    return std::nullopt;
  }
  if (!node.plain) {
    context.wrong_type(node, summary, "remove the quotes");
    return std::nullopt;
  }
  const std::string_view digits = node.text;
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) {
    context.error(node.where, quote(node.text) + " is not a plain decimal number", "expected " + std::string(summary));
    return std::nullopt;
  }
  if (digits.size() > 1 && digits[0] == '0') {
    context.error(node.where, quote(node.text) + " has a leading zero, which some read as octal", "remove the zero");
    return std::nullopt;
  }
  std::uint64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) {
    context.error(node.where, quote(node.text) + " is out of range", "expected " + std::string(summary));
    return std::nullopt;
  }
  return value;
}

const std::string* read_text(const Node& node, std::string_view summary, const Context& context) {
  if (node.kind != Node::Kind::scalar) {
    const bool glob = node.kind == Node::Kind::sequence;
    context.wrong_type(node, summary, glob ? "quote a value that starts with [" : "");
    return nullptr;
  }
  if (node.plain && plain_kind(node.text) != PlainKind::text) {
    context.wrong_type(node, summary, "write \"" + node.text + "\" in quotes");
    return nullptr;
  }
  return &node.text;
}

std::optional<std::size_t> read_word(const Node& node, const std::vector<std::string_view>& words,
                                     const Context& context) {
  const std::string summary = join({words.begin(), words.end()});
  const std::string* const text = read_text(node, summary, context);
  if (text == nullptr) {
    return std::nullopt;
  }
  const auto found = std::ranges::find(words, *text);
  if (found == words.end()) {
    const auto meant = nearest(*text, words);
    context.error(node.where, "expected " + summary + ", not " + quote(*text),
                  meant.empty() ? "" : "did you mean " + quote(meant) + '?');
    return std::nullopt;
  }
  return static_cast<std::size_t>(found - words.begin());
}

std::string join(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) {
      out += i + 1 == words.size() ? " or " : ", ";
    }
    out += words[i];
  }
  return out;
}

}  // namespace detail

namespace {

/// A number with a unit, between two bounds. `bare`: whether a plain scalar is the number alone; the errors then say
/// what it lacks and what to write.
template <typename T>
Type<T> with_unit(const std::string& what, T low, T high, std::string (*format)(T),
                  Result<T> (*parse)(std::string_view), bool (*bare)(PlainKind), const std::string& lacks,
                  const std::string& unit, const std::string& remedy) {
  Type<T> type;
  type.summary = what + " from " + format(low) + " to " + format(high);
  type.read = [=, summary = type.summary](const Node& node, T& out, const Context& context) {
    if (node.kind == Node::Kind::scalar && node.plain && bare(plain_kind(node.text))) {
      context.error(node.where, quote(node.text) + lacks, "write " + node.text + unit + remedy);
      return;
    }
    const std::string* const text = detail::read_text(node, summary, context);
    if (text == nullptr) {
      return;
    }
    const auto value = parse(*text);
    if (!value) {
      context.error(node.where, value.error().message, "expected " + summary);
    } else if (*value < low || *value > high) {
      context.error(node.where, quote(*text) + " is out of range", "expected " + summary);
    } else {
      out = *value;
    }
  };
  type.show = [format](const T& value) { return Json(format(value)); };
  return type;
}

}  // namespace

Type<Duration> duration(Duration low, Duration high) {
  auto type = with_unit<Duration>(
      "a duration", low, high, format_duration, parse_duration,
      [](PlainKind kind) { return kind == PlainKind::integer; }, " has no unit", "s", " for seconds");
  type.schema = {{"type", "string"},
                 {"pattern", "^(?=.)([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?([0-9]+us)?([0-9]+ns)?$"}};
  return type;
}

Type<Percent> percent(Percent low, Percent high) {
  auto type = with_unit<Percent>(
      "a percentage", low, high, format_percent, parse_percent,
      [](PlainKind kind) { return kind == PlainKind::integer || kind == PlainKind::real; }, " has no percent sign", "%",
      "");
  type.schema = {{"type", "string"}, {"pattern", "^[0-9]{1,3}([.][0-9]{1,2})?%$"}};
  return type;
}

Type<bool> boolean() {
  Type<bool> type;
  type.summary = "true or false";
  type.schema = {{"type", "boolean"}};
  type.read = [summary = type.summary](const Node& node, bool& out, const Context& context) {
    if (node.kind != Node::Kind::scalar || !node.plain || plain_kind(node.text) != PlainKind::boolean) {
      context.wrong_type(node, summary, node.kind == Node::Kind::scalar && !node.plain ? "remove the quotes" : "");
      return;
    }
    out = node.text.starts_with('t') || node.text.starts_with('T');
  };
  type.show = [](const bool& value) { return Json(value); };
  return type;
}

Type<std::string> text(TextRules rules) {
  Type<std::string> type;
  type.summary = rules.summary;
  type.schema = {{"type", "string"}, {"minLength", 1}, {"maxLength", rules.max_bytes}};
  type.schema.update(rules.schema);
  type.show = [](const std::string& value) { return Json(value); };
  type.read = [rules = std::move(rules)](const Node& node, std::string& out, const Context& context) {
    const std::string* const value = detail::read_text(node, rules.summary, context);
    if (value == nullptr) {
      return;
    }
    if (value->empty()) {
      context.error(node.where, "is empty", "expected " + rules.summary + ", or remove the key");
    } else if (value->size() > rules.max_bytes) {
      context.error(node.where, "is longer than " + std::to_string(rules.max_bytes) + " bytes", "shorten it");
    } else if (printable(*value) != *value) {
      context.error(node.where, quote(*value) + " has a line break or another control character",
                    "write it on one line");
    } else if (const auto checked = rules.check ? rules.check(*value) : Result<void>{}; !checked) {
      context.error(node.where, quote(*value) + ": " + checked.error().message);
    } else {
      out = *value;
    }
  };
  return type;
}

}  // namespace tacho::config
