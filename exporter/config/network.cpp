#include "config/network.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace tacho::config {
namespace {

constexpr unsigned kBits = 128;
constexpr unsigned kMappedBits = 96;

/// Clears the bits beyond the prefix; whether any was set.
bool cut(Network& network) {
  bool any = false;
  for (unsigned bit = network.prefix_bits; bit < kBits; ++bit) {
    const auto mask = static_cast<std::uint8_t>(0x80U >> bit % 8);
    auto& byte = network.address.at(bit / 8);
    any |= (byte & mask) != 0;
    byte &= static_cast<std::uint8_t>(~mask);
  }
  return any;
}

std::string write(const Network& network, bool four) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto* bytes = network.address.data();
  ::inet_ntop(four ? AF_INET : AF_INET6, four ? bytes + kMappedBits / 8 : bytes, text.data(), text.size());
  return std::string(text.data()) + "/" + std::to_string(network.prefix_bits - (four ? kMappedBits : 0));
}

}  // namespace

Result<Network> parse_network(std::string_view text) {
  const auto slash = text.find('/');
  const std::string address(text.substr(0, slash));
  Network network;
  const bool four = !address.contains(':');
  auto* bytes = network.address.data();
  if (four) {
    network.address[10] = network.address[11] = 0xff;
    bytes += kMappedBits / 8;
  }
  if (::inet_pton(four ? AF_INET : AF_INET6, address.c_str(), bytes) != 1) {
    return fail("is no network: expected an address like 10.0.0.0 or 2001:db8::, and / with the length of the prefix");
  }
  network.prefix_bits = kBits;
  if (slash != std::string_view::npos) {
    const std::string_view length = text.substr(slash + 1);
    const unsigned most = four ? 32 : kBits;
    unsigned bits = 0;
    const auto [end, problem] = std::from_chars(length.begin(), length.end(), bits);
    if (problem != std::errc() || end != length.end() || bits > most) {
      return fail("is no network: the length of its prefix is a number from 0 to " + std::to_string(most));
    }
    network.prefix_bits = bits + (four ? kMappedBits : 0);
  }
  if (cut(network)) {
    return fail("has address bits beyond its prefix; write " + write(network, four));
  }
  return network;
}

}  // namespace tacho::config
