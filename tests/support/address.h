#pragma once

#include <sys/socket.h>

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tacho::support {

/// Where a test server listens or a test client connects.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

/// Reads "127.0.0.1:PORT", "[::1]:PORT" or "unix:PATH" (a leading '@' in PATH means the abstract name space).
/// Port 0 asks the kernel for a free one.
Result<Address> parse_address(const std::string& text);

/// A listening stream socket with a long backlog; see `bound_name` for the port the kernel chose.
Result<UniqueFd> listen_on(const Address& address);

/// A connected socket of that type; TCP ones send at once (TCP_NODELAY), so that a request is one segment.
Result<UniqueFd> connect_to(const Address& address, int type = SOCK_STREAM);

/// Accepts one connection; TCP ones send at once.
Result<UniqueFd> accept_from(int listener);

/// The local address of a socket in the form that `parse_address` reads.
Result<std::string> bound_name(int descriptor);

struct Listening {
  UniqueFd socket;
  std::string name;  ///< as `bound_name` has it
};
/// listen_on() the address that a text names.
Result<Listening> listen_at(const std::string& address);

}  // namespace tacho::support
