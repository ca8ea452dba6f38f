#include "probes/peers.h"

#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

using tacho::config::PeerName;
using tacho::probes::PeerNames;

namespace {

peer_address peer_of(std::uint16_t family, std::uint16_t port, std::string_view address) {
  peer_address peer{};
  peer.family = family;
  peer.port = port;
  std::memcpy(&peer.address, address.data(), address.size());
  return peer;
}

}  // namespace

TEST_CASE("peers are named as people write addresses") {
  using namespace std::string_view_literals;
  CHECK(PeerNames().of(peer_of(AF_INET, 5432, "\x0a\0\0\x07"sv)) == "10.0.0.7:5432");
  CHECK(PeerNames().of(peer_of(AF_INET6, 443, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"sv)) == "[2001:db8::1]:443");
  CHECK(PeerNames().of(peer_of(AF_UNIX, 0, "/run/db.sock")) == "unix:/run/db.sock");
  CHECK(PeerNames().of(peer_of(AF_UNIX, 0, "\0abstract"sv)) == "unix:@abstract");
  CHECK(PeerNames().of(peer_of(0, 80, "")) == "other");
  const std::string longest(TACHO_PEER_ADDRESS, 'x');  // sun_path need not end with a NUL
  CHECK(PeerNames().of(peer_of(AF_UNIX, 0, longest)) == "unix:" + longest);
}

TEST_CASE("configured networks go by their names, with the port") {
  using namespace std::string_view_literals;
  const PeerNames names(std::vector<PeerName>{{.name = "cache", .networks = {"10.0.1.0/24"}},
                                              {.name = "database", .networks = {"10.0.2.0/24", "fd00::/8"}}});
  CHECK(names.of(peer_of(TACHO_PEER_NAMED, 6379, "\0\0\0\0"sv)) == "cache:6379");
  CHECK(names.of(peer_of(TACHO_PEER_NAMED, 5432, "\x01\0\0\0"sv)) == "database:5432");
  CHECK(names.of(peer_of(TACHO_PEER_NAMED, 5432, "\x02\0\0\0"sv)) == "other");
  CHECK(names.of(peer_of(AF_INET, 80, "\x0a\0\x01\x01"sv)) == "10.0.1.1:80");
}
