#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "base/result.h"

namespace tacho {

/// A unix socket's address as the calls for sockets take it, from what people write: a path, or "@name" for a name that
/// is in no file system (unix(7), abstract).
class UnixAddress {
 public:
  /// @return ENAMETOOLONG for more than 107 bytes
  static Result<UnixAddress> of(std::string_view text) {
    UnixAddress address;
    if (text.size() >= sizeof(address.name_.sun_path)) {
      return fail("the path of a unix socket has at most 107 bytes", ENAMETOOLONG);
    }
    address.name_.sun_family = AF_UNIX;
    std::memcpy(&address.name_.sun_path, text.data(), text.size());
    const bool abstract = text.starts_with('@');
    if (abstract) {
      address.name_.sun_path[0] = '\0';
    }
    // A path ends with a zero; all bytes of an abstract name count.
    address.size_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + (abstract ? 0 : 1));
    return address;
  }

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name_); }
  [[nodiscard]] socklen_t size() const { return size_; }
  [[nodiscard]] bool abstract() const { return name_.sun_path[0] == '\0'; }

 private:
  UnixAddress() = default;

  sockaddr_un name_{};
  socklen_t size_ = 0;
};

}  // namespace tacho
