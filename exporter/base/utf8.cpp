#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tacho {
namespace {

struct Lead {
  std::size_t length;
  unsigned char low, high;  // bounds of the second byte: they shut out overlong forms, surrogates and > U+10FFFF
};

Lead classify(unsigned char lead) {
  switch (lead) {
    case 0xe0:
      return {3, 0xa0, 0xbf};
    case 0xed:
      return {3, 0x80, 0x9f};
    case 0xf0:
      return {4, 0x90, 0xbf};
    case 0xf4:
      return {4, 0x80, 0x8f};
    default:
      break;
  }
  if (lead < 0x80) {
    return {1, 0, 0};
  }
  if (lead >= 0xc2 && lead <= 0xdf) {
    return {2, 0x80, 0xbf};
  }
  if (lead >= 0xe1 && lead <= 0xef) {
    return {3, 0x80, 0xbf};
  }
  if (lead >= 0xf1 && lead <= 0xf3) {
    return {4, 0x80, 0xbf};
  }
  return {0, 0, 0};
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  const bool c1 = first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;  // U+0080 to U+009F
  return first < 0x20 || first == 0x7f || c1;
}

/// Zero-width characters, marks of direction, separators of lines: what is read is not what is there.
bool is_deceptive(std::string_view character) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kRanges{{
      {"\u00ad", "\u00ad"},  // soft hyphen
      {"\u061c", "\u061c"},  // Arabic letter mark
      {"\u180e", "\u180e"},  // Mongolian vowel separator
      {"\u200b", "\u200f"},
      {"\u2028", "\u202e"},
      {"\u2060", "\u206f"},
      {"\ufeff", "\ufeff"},  // byte order mark
  }};
  return std::ranges::any_of(kRanges, [character](const auto& range) {
    return character.size() == range.first.size() && character >= range.first && character <= range.second;
  });
}

void append_escape(std::string& out, char c) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  out += "\\x";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

}  // namespace

std::size_t utf8_sequence(std::string_view text) {
  if (text.empty()) {
    return 0;
  }
  const Lead lead = classify(static_cast<unsigned char>(text[0]));
  if (text.size() < lead.length) {
    return 0;
  }
  for (std::size_t i = 1; i < lead.length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xbf;
    if (byte < low || byte > high) {
      return 0;
    }
  }
  return lead.length;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0 || is_control(text.substr(0, length))) {
      append_escape(out, text[0]);
      text.remove_prefix(1);
      continue;
    }
    if (is_deceptive(text.substr(0, length))) {
      for (const char byte : text.substr(0, length)) {
        append_escape(out, byte);
      }
      text.remove_prefix(length);
      continue;
    }
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

std::string well_formed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_sequence(text);
    if (length == 0) {
      append_escape(out, text[0]);
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace tacho
