#include "top/connect.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <memory>

#include "base/unix_address.h"

namespace tacho::top {
namespace {

constexpr int kConnectMs = 3000;

/// 0, or why not.
int try_connect(int socket, const sockaddr* address, socklen_t length) {
  if (::connect(socket, address, length) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  pollfd wait{socket, POLLOUT, 0};
  const int ready = ::poll(&wait, 1, kConnectMs);
  if (ready <= 0) {
    return ready == 0 ? ETIMEDOUT : errno;
  }
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

Result<UniqueFd> open_connection(int family, const sockaddr* address, socklen_t length, std::chrono::seconds patience,
                                 const std::function<bool(int)>& created) {
  UniqueFd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return fail_errno("socket");
  }
  if (!created(socket.get())) {
    return fail("ended", ECANCELED);
  }
  if (const int error = try_connect(socket.get(), address, length); error != 0) {
    return std::unexpected(Error::from_errno("connect", error));
  }
  ::fcntl(socket.get(), F_SETFL, 0);
  const timeval limit{.tv_sec = patience.count(), .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  return socket;
}

Result<UniqueFd> connect_unix(const std::string& path, std::chrono::seconds patience,
                              const std::function<bool(int)>& created) {
  const auto address = UnixAddress::of(path);
  if (!address) {
    return std::unexpected(address.error());
  }
  return open_connection(AF_UNIX, address->get(), address->size(), patience, created);
}

}  // namespace

Result<UniqueFd> connect_to(const Url& url, std::chrono::seconds patience, const std::function<bool(int)>& created) {
  if (!url.socket.empty()) {
    return connect_unix(url.socket, patience, created);
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(url.host.empty() ? nullptr : url.host.c_str(), url.port.c_str(), &hints, &found);
      error != 0) {
    return fail(std::string("the name is not known: ") + ::gai_strerror(error), EHOSTUNREACH);
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(found, &::freeaddrinfo);
  Result<UniqueFd> result = fail("no address");
  for (const addrinfo* each = list.get(); each != nullptr && !result; each = each->ai_next) {
    result = open_connection(each->ai_family, each->ai_addr, each->ai_addrlen, patience, created);
  }
  return result;
}

}  // namespace tacho::top
