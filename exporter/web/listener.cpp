#include "web/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <charconv>
#include <memory>
#include <span>
#include <utility>

#include "base/unix_address.h"

namespace tacho::web {
namespace {

constexpr int kBacklog = 4096;  // what the kernel allows: whoever finds no room knocks again only after a second
constexpr std::string_view kUnixPrefix = "unix:";

std::unexpected<Error> bad_address(std::string_view text, const std::string& what) {
  return fail("bad listen address '" + std::string(text) + "': " + what +
              " (write :9100, 127.0.0.1:9100, [::1]:9100 or unix:/path)");
}

std::unexpected<Error> cannot_listen(const ListenAddress& address, int code) {
  std::string what = "cannot listen on " + address.text;
  if (code == EADDRINUSE) {
    what += " (another program listens there: stop it, or choose another --web.listen-address)";
  } else if (code == EACCES) {
    what += address.is_unix ? " (the directory is not writable)" : " (ports below 1024 need CAP_NET_BIND_SERVICE)";
  } else if (code == ENOENT && address.is_unix) {
    what += " (make its directory, or choose another --web.listen-address)";
  } else if (code == EADDRNOTAVAIL) {
    what += " (no interface of this machine has that address)";
  }
  return fail_errno(what, code);
}

/// The socket API takes every address family through one type.
const sockaddr* generic(const void* address) {
  return static_cast<const sockaddr*>(address);
}

Result<UniqueFd> bind_and_listen(const ListenAddress& address, std::span<const std::byte> bytes, bool dual_stack) {
  const int family = generic(bytes.data())->sa_family;
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) {
    return cannot_listen(address, errno);
  }
  const int on = 1;
  const int only_v6 = dual_stack ? 0 : 1;
  // Allows a port whose old connections linger in TIME_WAIT; a second listener is refused all the same.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (family == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6));
  }
  if (::bind(fd.get(), generic(bytes.data()), static_cast<socklen_t>(bytes.size())) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return cannot_listen(address, errno);
  }
  return fd;
}

Result<std::string> bound_name(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  auto* const address = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(fd, address, &size) != 0) {
    return fail_errno("getsockname");
  }
  const int error =
      ::getnameinfo(address, size, host.data(), host.size(), port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) {
    return fail(std::string("getnameinfo: ") + ::gai_strerror(error));
  }
  const std::string name = host.data();
  return (storage.ss_family == AF_INET6 ? '[' + name + ']' : name) + ':' + port.data();
}

/// Whether a socket file may be replaced: nobody accepts connections there.
bool is_stale(const std::string& path, const UnixAddress& name) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) {
    return false;
  }
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  return probe && ::connect(probe.get(), name.get(), name.size()) != 0 && errno == ECONNREFUSED;
}

}  // namespace

Result<ListenAddress> ListenAddress::parse(std::string_view text) {
  ListenAddress address{.text = std::string(text), .host = {}};
  if (text.starts_with(kUnixPrefix)) {
    address.is_unix = true;
    address.host = text.substr(kUnixPrefix.size());
    const bool shaped = address.host.starts_with('/') || (address.host.starts_with('@') && address.host.size() > 1);
    if (!shaped || address.host.contains('\0')) {
      return bad_address(text, "a unix socket needs an absolute path or an @name");
    }
    if (address.host.size() >= sizeof(sockaddr_un::sun_path)) {
      return bad_address(text, "the path of a unix socket has at most 107 bytes");
    }
    return address;
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) {
    return bad_address(text, "the port is missing");
  }
  std::string_view host = text.substr(0, colon);
  const std::string port(text.substr(colon + 1));
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) {
    host = host.substr(1, host.size() - 2);
  }
  if (host.find_first_of("[] \t/") != std::string_view::npos || host.contains('\0') ||
      host.contains(':') != bracketed) {
    return bad_address(text, "the host is malformed; an IPv6 address stands in brackets");
  }
  const char* const end = port.data() + port.size();
  const auto [rest, error] = std::from_chars(port.data(), end, address.port);
  if (port.empty() || rest != end || error != std::errc()) {
    return bad_address(text, "the port must be a number from 0 to 65535");
  }
  address.host = host;
  return address;
}

Listener::~Listener() {
  if (!path_.empty()) {
    ::unlink(path_.c_str());
  }
}

Result<Listener> Listener::open(const ListenAddress& address) {
  return address.is_unix ? open_unix(address) : open_tcp(address);
}

Result<Listener> Listener::open_unix(const ListenAddress& address) {
  const auto name = UnixAddress::of(address.host);
  if (!name) {
    return std::unexpected(name.error());
  }
  if (!name->abstract() && is_stale(address.host, *name)) {
    ::unlink(address.host.c_str());
  }
  auto fd = bind_and_listen(address, {reinterpret_cast<const std::byte*>(name->get()), name->size()}, false);
  if (!fd) {
    return std::unexpected(fd.error());
  }
  return Listener(std::move(*fd), address.text, name->abstract() ? "" : address.host, true);
}

Result<Listener> Listener::open_tcp(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.host.empty() ? "::" : address.host.c_str(),
                                  std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return bad_address(address.text, "the host is unknown: " + std::string(::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  const addrinfo* chosen = found;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family == AF_INET && chosen->ai_family != AF_INET) {
      chosen = each;
    }
  }
  const bool every_address = address.host.empty() || address.host == "::";
  const std::span bytes(reinterpret_cast<const std::byte*>(chosen->ai_addr), chosen->ai_addrlen);
  auto fd = bind_and_listen(address, bytes, every_address);
  if (!fd && address.host.empty() && (fd.error().code == EAFNOSUPPORT || fd.error().code == EADDRNOTAVAIL)) {
    sockaddr_in any{};  // a host without IPv6
    any.sin_family = AF_INET;
    any.sin_port = htons(address.port);
    fd = bind_and_listen(address, std::as_bytes(std::span(&any, 1)), false);
  }
  if (!fd) {
    return std::unexpected(fd.error());
  }
  auto name = bound_name(fd->get());
  if (!name) {
    return std::unexpected(name.error().within("listening on " + address.text));
  }
  return Listener(std::move(*fd), std::move(*name), "", false);
}

}  // namespace tacho::web
