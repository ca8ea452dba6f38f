#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>

#include "base/result.h"
#include "config/type.h"

namespace tacho::config {

/// A duration from `low` to `high`.
Type<Duration> duration(Duration low, Duration high);

/// A percentage from `low` to `high`.
Type<Percent> percent(Percent low, Percent high);

/// `true` or `false`, nothing else: yes, on and 1 are errors.
Type<bool> boolean();

/// Text of 1 to `max_bytes` bytes without control characters. `check` returns further errors, if there are any.
struct TextRules {
  std::string summary;
  std::size_t max_bytes = 0;
  std::function<Result<void>(std::string_view)> check;
  Json schema = Json::object();  ///< keywords beyond type and length
};
Type<std::string> text(TextRules rules);

namespace detail {

/// The whole number in `node`, decimal and without leading zeros (YAML 1.1 reads those as octal); nothing: reported.
std::optional<std::uint64_t> read_number(const Node& node, std::string_view summary, const Context& context);
/// The text in `node`; nullptr: reported.
const std::string* read_text(const Node& node, std::string_view summary, const Context& context);
/// Index in `words` of the word in `node`; nothing: an error was reported.
std::optional<std::size_t> read_word(const Node& node, const std::vector<std::string_view>& words,
                                     const Context& context);
std::string join(const std::vector<std::string>& words);

}  // namespace detail

/// A whole number from `low` to `high`; `noun` is its name: "a number", "a port".
template <std::unsigned_integral T>
Type<T> integer(T low, T high, std::string_view noun) {
  Type<T> type;
  type.summary = std::string(noun) + " from " + std::to_string(low) + " to " + std::to_string(high);
  type.schema = {{"type", "integer"}, {"minimum", low}, {"maximum", high}};
  type.read = [low, high, summary = type.summary](const Node& node, T& out, const Context& context) {
    const auto value = detail::read_number(node, summary, context);
    if (value && (*value < low || *value > high)) {
      context.error(node.where, quote(node.text) + " is out of range", "expected " + summary);
    } else if (value) {
      out = static_cast<T>(*value);
    }
  };
  type.show = [](const T& value) { return Json(value); };
  return type;
}

/// One of a few whole numbers.
template <std::unsigned_integral T>
Type<T> number_of(std::vector<T> allowed) {
  std::vector<std::string> words;
  words.reserve(allowed.size());
  for (const T value : allowed) {
    words.push_back(std::to_string(value));
  }
  Type<T> type;
  type.summary = detail::join(words);
  type.schema = {{"enum", allowed}};
  type.read = [allowed = std::move(allowed), summary = type.summary](const Node& node, T& out, const Context& context) {
    const auto value = detail::read_number(node, summary, context);
    if (!value) {
      return;
    }
    for (const T candidate : allowed) {
      if (candidate == *value) {
        out = candidate;
        return;
      }
    }
    context.error(node.where, quote(node.text) + " is out of range", "expected " + summary);
  };
  type.show = [](const T& value) { return Json(value); };
  return type;
}

/// A value of that type, or a word, which reads as T{}; no other value may read as that.
template <class T>
Type<T> or_word(std::string_view word, Type<T> type) {
  const Json given = type.schema;
  type.schema = {{"anyOf", {{{"const", word}}, given}}};
  type.summary = std::string(word) + " or " + type.summary;
  type.read = [word, read = type.read](const Node& node, T& out, const Context& context) {
    if (node.kind == Node::Kind::scalar && node.text == word) {
      out = T{};
    } else {
      read(node, out, context);
    }
  };
  type.show = [word, show = type.show](const T& value) { return value == T{} ? Json(word) : show(value); };
  return type;
}

template <class T>
Type<T> or_auto(Type<T> type) {
  return or_word("auto", std::move(type));
}

/// One of a few words, each standing for a value of the enumeration.
template <class E>
Type<E> choice(std::vector<std::pair<std::string_view, E>> values) {
  std::vector<std::string_view> words;
  words.reserve(values.size());
  for (const auto& [word, value] : values) {
    words.push_back(word);
  }
  Type<E> type;
  type.summary = detail::join({words.begin(), words.end()});
  type.schema = {{"enum", words}};
  type.show = [values](const E& shown) {
    for (const auto& [word, value] : values) {
      if (value == shown) {
        return Json(word);
      }
    }
    return Json();
  };
  type.read = [values = std::move(values), words = std::move(words)](const Node& node, E& out, const Context& context) {
    if (const auto index = detail::read_word(node, words, context)) {
      out = values[*index].second;
    }
  };
  return type;
}

}  // namespace tacho::config
