#include "support/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace tacho::support {
namespace {

constexpr std::string_view kUnixPrefix = "unix:";
constexpr int kBacklog = 1024;

template <class T>
Address pack(const T& value, std::size_t length = sizeof(T)) {
  Address address;
  std::memcpy(&address.storage, &value, sizeof(T));
  address.length = static_cast<socklen_t>(length);
  return address;
}

template <class T>
T unpack(const Address& address) {
  T value{};
  std::memcpy(&value, &address.storage, sizeof(T));
  return value;
}

const sockaddr* raw(const Address& address) {
  return std::bit_cast<const sockaddr*>(&address.storage);
}

Result<Address> parse_unix(std::string_view path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(name.sun_path)) {
    return fail("unix socket path '" + std::string(path) + "': must have 1 to 107 bytes");
  }
  std::ranges::copy(path, static_cast<char*>(name.sun_path));
  if (path.front() == '@') {
    name.sun_path[0] = '\0';
    return pack(name, offsetof(sockaddr_un, sun_path) + path.size());
  }
  return pack(name, offsetof(sockaddr_un, sun_path) + path.size() + 1);
}

void send_at_once(int descriptor) {
  const int one = 1;
  // Fails on unix sockets, which have nothing to delay.
  (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

}  // namespace

Result<Address> parse_address(const std::string& text) {
  const std::string_view view = text;
  if (view.starts_with(kUnixPrefix)) {
    return parse_unix(view.substr(kUnixPrefix.size()));
  }
  const auto colon = view.rfind(':');
  std::uint16_t port = 0;
  if (colon == std::string_view::npos ||
      std::from_chars(view.data() + colon + 1, view.data() + view.size(), port).ptr != view.data() + view.size()) {
    return fail("address '" + text + "': expected HOST:PORT or unix:PATH");
  }
  std::string host(view.substr(0, colon));
  if (host.starts_with('[') && host.ends_with(']')) {
    sockaddr_in6 name{};
    name.sin6_family = AF_INET6;
    name.sin6_port = htons(port);
    host = host.substr(1, host.size() - 2);
    if (inet_pton(AF_INET6, host.c_str(), &name.sin6_addr) == 1) {
      return pack(name);
    }
  }
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &name.sin_addr) != 1) {
    return fail("address '" + text + "': the host must be a numeric IPv4 address or an IPv6 one in brackets");
  }
  return pack(name);
}

Result<UniqueFd> listen_on(const Address& address) {
  UniqueFd listener(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener) {
    return fail_errno("socket");
  }
  const int one = 1;
  (void)setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (bind(listener.get(), raw(address), address.length) != 0) {
    return fail_errno("bind");
  }
  if (listen(listener.get(), kBacklog) != 0) {
    return fail_errno("listen");
  }
  return listener;
}

Result<UniqueFd> connect_to(const Address& address, int type) {
  UniqueFd connection(socket(address.storage.ss_family, type | SOCK_CLOEXEC, 0));
  if (!connection) {
    return fail_errno("socket");
  }
  send_at_once(connection.get());
  if (connect(connection.get(), raw(address), address.length) != 0) {
    return fail_errno("connect");
  }
  return connection;
}

Result<UniqueFd> accept_from(int listener) {
  UniqueFd connection(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection) {
    return fail_errno("accept");
  }
  send_at_once(connection.get());
  return connection;
}

Result<std::string> bound_name(int descriptor) {
  Address address;
  address.length = sizeof(address.storage);
  if (getsockname(descriptor, std::bit_cast<sockaddr*>(&address.storage), &address.length) != 0) {
    return fail_errno("getsockname");
  }
  std::array<char, INET6_ADDRSTRLEN> host{};
  switch (address.storage.ss_family) {
    case AF_INET: {
      const auto name = unpack<sockaddr_in>(address);
      inet_ntop(AF_INET, &name.sin_addr, host.data(), host.size());
      return std::string(host.data()) + ":" + std::to_string(ntohs(name.sin_port));
    }
    case AF_INET6: {
      const auto name = unpack<sockaddr_in6>(address);
      inet_ntop(AF_INET6, &name.sin6_addr, host.data(), host.size());
      return "[" + std::string(host.data()) + "]:" + std::to_string(ntohs(name.sin6_port));
    }
    default: {
      const auto name = unpack<sockaddr_un>(address);
      const auto length = address.length - offsetof(sockaddr_un, sun_path);
      std::string path(static_cast<const char*>(name.sun_path), length);
      if (path.starts_with('\0')) {
        path.front() = '@';
      } else {
        path.resize(path.find_last_not_of('\0') + 1);
      }
      return std::string(kUnixPrefix) + path;
    }
  }
}

Result<Listening> listen_at(const std::string& address) {
  const auto parsed = parse_address(address);
  if (!parsed) {
    return std::unexpected(parsed.error());
  }
  auto listener = listen_on(*parsed);
  if (!listener) {
    return std::unexpected(listener.error().within(address));
  }
  auto name = bound_name(listener->get());
  if (!name) {
    return std::unexpected(name.error());
  }
  return Listening{.socket = std::move(*listener), .name = std::move(*name)};
}

}  // namespace tacho::support
