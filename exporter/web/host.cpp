#include "web/host.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "base/regular_file.h"
#include "web/message.h"

namespace tacho::web {
namespace {

constexpr std::size_t kLargestTable = 64 << 10;  // bytes; of a larger one the beginning counts

bool is_address(int family, std::string_view text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(family, std::string(text).c_str(), address.data()) == 1;
}

bool is_port(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// "[::1]:9435", with a zone or without.
bool is_v6_address(std::string_view host) {
  const auto end = host.find(']');
  if (!host.starts_with('[') || end == std::string_view::npos) {
    return false;
  }
  const std::string_view behind = host.substr(end + 1);
  const std::string_view address = host.substr(1, end - 1);
  return is_address(AF_INET6, address.substr(0, address.find('%'))) &&
         (behind.empty() || (behind.starts_with(':') && is_port(behind.substr(1))));
}

/// A dot at the end means the same.
std::string_view without_end(std::string_view name) {
  return name.ends_with('.') ? name.substr(0, name.size() - 1) : name;
}

bool ends_with_name(std::string_view name, std::string_view end) {
  return name.size() >= end.size() && same_name(name.substr(name.size() - end.size()), end);
}

std::string machine_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

/// The names on a line of the table.
std::vector<std::string> names_on(std::string_view line) {
  std::vector<std::string> words;
  line = line.substr(0, line.find('#'));
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty()) {
      break;
    }
    const auto end = std::min(line.find_first_of(" \t\r"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  words.erase(words.begin(), words.begin() + (words.empty() ? 0 : 1));  // the address
  return words;
}

}  // namespace

OwnNames::OwnNames(std::string_view machine, std::string_view hosts) {
  if (machine.empty()) {
    return;
  }
  names_.emplace_back(machine);
  for (const auto line : hosts | std::views::split('\n')) {
    std::vector<std::string> names = names_on({line.begin(), line.end()});
    if (std::ranges::any_of(names, [&](const std::string& name) { return same_name(name, machine); })) {
      std::ranges::move(names, std::back_inserter(names_));
    }
  }
}

OwnNames OwnNames::of_this_machine() {
  return {machine_name(), read_regular_file("/etc/hosts", kLargestTable).value_or("")};
}

bool OwnNames::knows(std::string_view name) const {
  return std::ranges::any_of(names_, [&](const std::string& own) { return same_name(without_end(own), name); });
}

bool OwnNames::has(std::string_view host) const {
  if (host.starts_with('[')) {
    return is_v6_address(host);
  }
  const auto colon = host.find(':');
  if (colon != std::string_view::npos && !is_port(host.substr(colon + 1))) {
    return false;
  }
  const std::string_view name = without_end(host.substr(0, colon));
  return !name.contains('.') || is_address(AF_INET, name) || ends_with_name(name, ".localhost") || knows(name) ||
         same_name(name, machine_name());
}

}  // namespace tacho::web
