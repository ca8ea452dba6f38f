#pragma once

#include <poll.h>

#include <cerrno>

namespace tacho::web {

/// Whether accept would find a connection, or recv something; leaves errno alone.
inline bool has_pending(int socket) {
  const int before = errno;
  pollfd look{.fd = socket, .events = POLLIN, .revents = 0};
  const bool found = ::poll(&look, 1, 0) > 0;
  errno = before;
  return found;
}

}  // namespace tacho::web
