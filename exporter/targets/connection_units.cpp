#include "targets/connection_units.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "targets/plain_number.h"

namespace tacho::targets {
namespace {

constexpr std::string_view kService = ".service";
constexpr std::string_view kSlice = ".slice";

bool is_address(std::string_view text) {
  return text.find(':') != std::string_view::npos &&
         text.find_first_not_of("0123456789abcdefABCDEF.:") == std::string_view::npos;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(at + 1);
  }
}

/// systemd numbers the connections, and adds the two addresses, or the client's process and user; before the addresses
/// newer ones have the socket's cookie.
bool names_connection(std::string_view instance) {
  /// An instance may also be called after a day: no client's number is that of a month or day.
  constexpr std::uint64_t kLastDay = 31;
  const std::vector<std::string_view> parts = split(instance, '-');
  if (parts.size() < 2 || !plain_number(parts.front())) {
    return false;
  }
  if (parts.size() == 2) {
    return parts.back() == "unknown";
  }
  if (is_address(parts.back())) {
    return is_address(parts[parts.size() - 2]) && (parts.size() == 3 || (parts.size() == 4 && plain_number(parts[1])));
  }
  const auto process = plain_number(parts[parts.size() - 2]);
  return parts.size() <= 4 && process && *process > kLastDay && plain_number(parts.back());
}

/// As systemd-escape does; a dash would be a level of slices.
std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == ':' ||
                       c == '_' || (c == '.' && !out.empty());
    if (plain) {
      out += c;
      continue;
    }
    constexpr std::string_view kHex = "0123456789abcdef";
    const auto code = static_cast<unsigned char>(c);
    out += "\\x";
    out += kHex[code / 16];
    out += kHex[code % 16];
  }
  return out;
}

std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned char code = 0;
    const bool escaped = text.substr(i).starts_with("\\x") && i + 4 <= text.size() &&
                         std::from_chars(text.data() + i + 2, text.data() + i + 4, code, 16).ec == std::errc();
    out += escaped ? static_cast<char>(code) : text[i];
    i += escaped ? 3 : 0;
  }
  return out;
}

/// Directory and last component.
std::pair<std::string_view, std::string_view> part(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::pair(std::string_view{}, path)
                                         : std::pair(path.substr(0, slash), path.substr(slash + 1));
}

CgroupIdentity identity_of(std::string_view slice, std::string unit) {
  // Whose it is, a user's or a machine's, is that of any unit there.
  CgroupIdentity identity = identify(std::string(slice) + "/" + unit);
  identity.path = slice;
  identity.unit = std::move(unit);
  return identity;
}

}  // namespace

std::optional<CgroupIdentity> service_of_connections(const std::string& path) {
  const auto [slice, unit] = part(path);
  const auto at = unit.find('@');
  if (at == std::string_view::npos || at == 0 || !unit.ends_with(kService) || unit.starts_with("systemd-")) {
    return std::nullopt;
  }
  const std::string_view name = unit.substr(0, at);
  if (!names_connection(unit.substr(at + 1, unit.size() - at - 1 - kService.size())) ||
      !part(slice).second.ends_with("-" + escape(name) + std::string(kSlice))) {
    return std::nullopt;
  }
  const CgroupIdentity instance = identify(path);
  if (instance.kind != CgroupIdentity::Kind::unit || instance.path != path) {
    return std::nullopt;
  }
  return identity_of(slice, std::string(name) + "@" + std::string(kService));
}

CgroupIdentity identify_template(const std::string& slice) {
  std::string_view name = part(slice).second;
  name.remove_suffix(std::min(name.size(), kSlice.size()));
  const auto dash = name.rfind('-');
  return identity_of(
      slice, unescape(name.substr(dash == std::string_view::npos ? 0 : dash + 1)) + "@" + std::string(kService));
}

bool is_template(const CgroupIdentity& identity) {
  return identity.kind == CgroupIdentity::Kind::unit && identity.unit.ends_with("@.service");
}

}  // namespace tacho::targets
