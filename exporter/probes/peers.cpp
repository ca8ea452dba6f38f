#include "probes/peers.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "config/network.h"
#include "kernel/map.h"

namespace tacho::probes {
namespace {

std::string internet_address(int family, const peer_address& peer) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, &peer.address, text.data(), text.size());
  const std::string port = ":" + std::to_string(peer.port);
  return family == AF_INET ? text.data() + port : "[" + std::string(text.data()) + "]" + port;
}

std::string unix_address(const peer_address& peer) {
  // A path need not end with a NUL; an abstract name begins with one.
  const std::string_view path(reinterpret_cast<const char*>(&peer.address), sizeof(peer.address));
  const bool abstract = path.front() == '\0';
  const std::string_view rest = path.substr(abstract ? 1 : 0);
  return (abstract ? "unix:@" : "unix:") + std::string(rest.substr(0, rest.find('\0')));
}

}  // namespace

void PeerNames::set_up(kernel::ObjectSetup& setup) const {
  std::size_t networks = 0;
  for (const config::PeerName& peer : peers_) {
    networks += peer.networks.size();
  }
  setup.set_max_entries("peer_networks", static_cast<std::uint32_t>(std::max<std::size_t>(networks, 1)));
}

Result<void> PeerNames::publish(const kernel::BpfObject& object) const {
  const auto map = kernel::Map<peer_network, std::uint32_t>::open(object, "peer_networks");
  if (!map) {
    return std::unexpected(map.error());
  }
  for (std::uint32_t index = 0; index < peers_.size(); ++index) {
    for (const std::string& text : peers_[index].networks) {
      const auto network = config::parse_network(text);
      if (!network) {
        return std::unexpected(network.error().within("peers: " + text));
      }
      peer_network key{.prefix_bits = network->prefix_bits, .address = {}};
      std::ranges::copy(network->address, std::begin(key.address));
      if (auto named = map->put(key, index); !named) {
        return std::unexpected(named.error().within("cannot name the network " + text));
      }
    }
  }
  return {};
}

std::string PeerNames::of(const peer_address& peer) const {
  switch (peer.family) {
    case AF_INET:
    case AF_INET6:
      return internet_address(peer.family, peer);
    case AF_UNIX:
      return unix_address(peer);
    case TACHO_PEER_NAMED: {
      std::uint32_t index = 0;
      std::memcpy(&index, &peer.address, sizeof(index));
      return index < peers_.size() ? peers_[index].name + ":" + std::to_string(peer.port) : "other";
    }
    default:
      return "other";
  }
}

}  // namespace tacho::probes
