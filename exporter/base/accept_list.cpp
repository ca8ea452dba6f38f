#include "base/accept_list.h"

#include <algorithm>

#include "base/ascii.h"

namespace tacho {
namespace {

bool is_token_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

/// Reads one element after the other from the header's front; a method that finds no match takes nothing.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[nodiscard]] bool at_delimiter() const { return done() || rest_.front() == ';' || rest_.front() == ','; }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }

  bool take(char c) {
    const bool found = rest_.starts_with(c);
    rest_.remove_prefix(found ? 1 : 0);
    return found;
  }

  std::string token() {
    const auto length = static_cast<std::size_t>(std::ranges::find_if_not(rest_, is_token_char) - rest_.begin());
    std::string result(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return result;
  }

  /// In lower case.
  std::string name() {
    std::string result = token();
    std::ranges::transform(result, result.begin(), lower);
    return result;
  }

  /// A token or a quoted string; nothing for an empty token or a string without end.
  std::optional<std::string> value() {
    if (!take('"')) {
      std::string result = token();
      return result.empty() ? std::nullopt : std::optional(std::move(result));
    }
    std::string result;
    while (!rest_.empty() && !rest_.starts_with('"')) {
      if (take('\\') && rest_.empty()) {
        return std::nullopt;
      }
      result += rest_.front();
      rest_.remove_prefix(1);
    }
    return take('"') ? std::optional(std::move(result)) : std::nullopt;
  }

  /// To behind the comma that ends a malformed element; commas in quotes do not count.
  void skip_element() {
    bool quoted = false;
    while (!rest_.empty() && (quoted || !rest_.starts_with(','))) {
      if (quoted && rest_.starts_with('\\') && rest_.size() > 1) {
        rest_.remove_prefix(1);
      } else if (rest_.starts_with('"')) {
        quoted = !quoted;
      }
      rest_.remove_prefix(1);
    }
    take(',');
  }

 private:
  std::string_view rest_;
};

bool parse_parameter(Scanner& in, AcceptEntry& entry) {
  std::string name = in.name();
  if (name.empty() || !in.take('=')) {
    return false;
  }
  std::optional<std::string> value = in.value();
  if (!value) {
    return false;
  }
  if (name == "q") {
    const std::optional<int> weight = parse_weight(*value);
    entry.weight = weight.value_or(0);
    return weight.has_value();
  }
  entry.parameters.emplace_back(std::move(name), std::move(*value));
  return true;
}

/// Up to its comma or the end. @return false: it is malformed, and the scanner stands anywhere in it
bool parse_entry(Scanner& in, AcceptEntry& entry) {
  entry.type = in.name();
  const bool is_range = in.take('/');
  entry.subtype = is_range ? in.name() : "";
  if (entry.type.empty() || (is_range && entry.subtype.empty())) {
    return false;
  }
  for (in.skip_blanks(); in.take(';'); in.skip_blanks()) {
    in.skip_blanks();
    // RFC 9110 §5.6.6 allows an empty parameter.
    if (!in.at_delimiter() && !parse_parameter(in, entry)) {
      return false;
    }
  }
  return in.done() || in.take(',');
}

}  // namespace

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

std::vector<AcceptEntry> parse_accept_list(std::string_view header) {
  constexpr std::size_t kLongest = 2048;
  if (header.size() > kLongest) {
    const auto comma = header.substr(0, kLongest).rfind(',');
    header = header.substr(0, comma == std::string_view::npos ? 0 : comma);
  }
  std::vector<AcceptEntry> entries;
  for (Scanner in(header); !in.done();) {
    in.skip_blanks();
    if (in.done() || in.take(',')) {
      continue;
    }
    AcceptEntry& entry = entries.emplace_back();
    if (!parse_entry(in, entry)) {
      entry.malformed = true;
      in.skip_element();
    }
  }
  return entries;
}

}  // namespace tacho
