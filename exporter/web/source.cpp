#include "web/source.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

namespace tacho::web {
namespace {

constexpr unsigned kLoopbackNetwork = 127;  // 127.0.0.0/8

std::string text_of(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, address, text.data(), text.size());
  return text.data();
}

Source of_v4(const in_addr& address) {
  const std::string text = text_of(AF_INET, &address);
  return {.address = text, .key = text, .local = ntohl(address.s_addr) >> 24U == kLoopbackNetwork};
}

}  // namespace

Source Source::of(int socket) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    return {};
  }
  if (storage.ss_family == AF_INET) {
    return of_v4(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr);
  }
  if (storage.ss_family == AF_INET6) {
    in6_addr address = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&address)) {
      in_addr v4{};
      std::memcpy(&v4, &address.s6_addr[12], sizeof(v4));
      return of_v4(v4);
    }
    Source source{.address = text_of(AF_INET6, &address), .key = {}, .local = IN6_IS_ADDR_LOOPBACK(&address)};
    if (!source.local) {
      std::memset(&address.s6_addr[8], 0, 8);  // one client may have all addresses of such a network
    }
    source.key = text_of(AF_INET6, &address);
    return source;
  }
  ucred peer{};
  size = sizeof(peer);
  ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size);
  return {.address = {}, .key = "uid " + std::to_string(peer.uid), .local = true};
}

}  // namespace tacho::web
