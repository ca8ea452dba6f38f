// Content negotiation: negotiate() of exposition.h.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/weight.h"
#include "metrics/exposition.h"

namespace tacho::metrics {
namespace {

/// A media range of an Accept header (RFC 9110 §12.5.1), names in lower case.
struct MediaRange {
  std::string type;
  std::string subtype;
  std::string version;  ///< of the parameter, empty if there is none
  std::string proto;
  std::string encoding;
  int weight = 1000;  ///< in thousandths
};

/// What the most specific range that matches a format says of it; the higher weight of equally specific ones.
struct Preference {
  int specificity = -1;
  int weight = 0;
};

bool is_token_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return tacho::lower(c); });
  return result;
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
    std::size_t length = 0;
    while (length < rest_.size() && is_token_char(rest_[length])) {
      ++length;
    }
    std::string result(rest_.substr(0, length));
    rest_.remove_prefix(length);
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

bool parse_parameter(Scanner& in, MediaRange& range) {
  const std::string name = lower(in.token());
  if (name.empty() || !in.take('=')) {
    return false;
  }
  std::optional<std::string> value = in.value();
  if (!value) {
    return false;
  }
  if (name == "q") {
    const std::optional<int> weight = parse_weight(*value);
    range.weight = weight.value_or(0);
    return weight.has_value();
  }
  for (const auto& [known, parameter] :
       {std::pair("version", &MediaRange::version), std::pair("proto", &MediaRange::proto),
        std::pair("encoding", &MediaRange::encoding)}) {
    if (name == known) {
      range.*parameter = std::move(*value);
    }
  }
  return true;
}

/// One element up to its comma or the end; nothing if it is malformed, in which case the scanner stands anywhere in it.
std::optional<MediaRange> parse_range(Scanner& in) {
  MediaRange range;
  range.type = lower(in.token());
  const bool slash = in.take('/');
  range.subtype = lower(in.token());
  if (range.type.empty() || !slash || range.subtype.empty() || (range.type == "*" && range.subtype != "*")) {
    return std::nullopt;
  }
  for (in.skip_blanks(); in.take(';'); in.skip_blanks()) {
    in.skip_blanks();
    // RFC 9110 §5.6.6 allows an empty parameter.
    if (!in.at_delimiter() && !parse_parameter(in, range)) {
      return std::nullopt;
    }
  }
  return in.done() || in.take(',') ? std::optional(std::move(range)) : std::nullopt;
}

struct MediaType {
  std::string_view type;
  std::string_view subtype;
  std::string_view version;
};

MediaType media_type(Format format) {
  switch (format) {
    case Format::openmetrics:
      return {"application", "openmetrics-text", "1.0.0"};
    case Format::protobuf:
      return {"application", "vnd.google.protobuf", ""};
    case Format::prometheus_text:
      break;
  }
  return {"text", "plain", "0.0.4"};
}

/// 4: type, subtype and exactly our version match, 3: a version that ours stands in for, 2: type and subtype,
/// 1: type, 0: anything, -1: no match.
int specificity(const MediaRange& range, Format format) {
  if (range.type == "*") {
    return 0;
  }
  const MediaType ours = media_type(format);
  if (range.type != ours.type) {
    return -1;
  }
  if (range.subtype == "*") {
    return 1;
  }
  if (range.subtype != ours.subtype) {
    return -1;
  }
  if (format == Format::protobuf) {
    // Whatever else is made of protobuf is something else.
    return range.proto == "io.prometheus.client.MetricFamily" && range.encoding == "delimited" ? 4 : -1;
  }
  if (range.version.empty()) {
    return 2;
  }
  if (range.version == ours.version) {
    return 4;
  }
  return format == Format::openmetrics && range.version.starts_with("0.") ? 3 : -1;
}

void consider(Preference& best, const MediaRange& range, Format format) {
  const int found = specificity(range, format);
  if (found > best.specificity) {
    best = {.specificity = found, .weight = range.weight};
  } else if (found == best.specificity && found >= 0) {
    best.weight = std::max(best.weight, range.weight);
  }
}

}  // namespace

Format negotiate(std::string_view accept) {
  std::array<Preference, kFormats.size()> found;
  for (Scanner in(accept); !in.done();) {
    in.skip_blanks();
    if (in.done() || in.take(',')) {
      continue;
    }
    if (const std::optional<MediaRange> range = parse_range(in)) {
      for (const Format format : kFormats) {
        consider(found.at(static_cast<std::size_t>(format)), *range, format);
      }
    } else {
      in.skip_element();
    }
  }
  const auto& [text, openmetrics, protobuf] = found;
  const auto named = [](const Preference& format) { return format.specificity >= 2 && format.weight > 0; };
  const bool open = openmetrics.weight > text.weight || (named(openmetrics) && openmetrics.weight == text.weight);
  if (named(protobuf) && protobuf.weight >= (open ? openmetrics : text).weight) {
    return Format::protobuf;
  }
  return open ? Format::openmetrics : Format::prometheus_text;
}

}  // namespace tacho::metrics
