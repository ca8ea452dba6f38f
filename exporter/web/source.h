#pragma once

#include <string>

namespace tacho::web {

/// The other end of a connection.
struct Source {
  std::string address;  ///< without port; empty for unix sockets
  std::string key;     ///< sources with one key are treated as one: an IPv4 address, an IPv6 network of 64 bits, a user
  bool local = false;  ///< on this machine: over loopback or a unix socket

  static Source of(int socket);
};

}  // namespace tacho::web
