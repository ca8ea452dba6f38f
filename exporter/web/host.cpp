#include "web/host.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "web/message.h"

namespace tacho::web {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Without the port and the dot at the end, which mean the same.
std::string_view name_of(std::string_view host) {
  host = host.substr(0, host.find(':'));
  return host.ends_with('.') ? host.substr(0, host.size() - 1) : host;
}

bool ends_with_name(std::string_view name, std::string_view end) {
  return name.size() >= end.size() && same_name(name.substr(name.size() - end.size()), end);
}

}  // namespace

bool may_be_here(std::string_view host, std::string_view machine) {
  if (host.starts_with('[')) {
    return true;
  }
  const std::string_view name = name_of(host);
  // No top-level domain is a number (RFC 3696 §2): it is an address.
  if (!name.contains('.') || is_number(name.substr(name.rfind('.') + 1)) || ends_with_name(name, ".localhost")) {
    return true;
  }
  const std::string_view own = machine.substr(0, machine.find('.'));
  return !own.empty() && same_name(name.substr(0, name.find('.')), own);
}

bool may_be_here(std::string_view host) {
  std::array<char, 256> machine{};
  ::gethostname(machine.data(), machine.size() - 1);
  return may_be_here(host, machine.data());
}

}  // namespace tacho::web
