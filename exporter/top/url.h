#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho::top {

/// Where a tacho serves.
struct Url {
  bool tls = false;
  std::string host;    ///< name or address, without brackets; of a unix socket "localhost"
  std::string port;    ///< decimal
  std::string prefix;  ///< of all paths, if a proxy has put tacho below one: "" or "/tacho"
  std::string socket;  ///< path of a unix socket, empty for TCP
  std::string user;    ///< empty: no authentication
  std::string password;

  /// As shown to people: no password.
  [[nodiscard]] std::string text() const;
};

/// "http://HOST:PORT/PREFIX", "https://USER:PASSWORD@HOST", "HOST:PORT", ":PORT" (this machine), "unix:PATH". Without a
/// port it is tacho's own (9435), of https 443.
Result<Url> parse_url(std::string_view text);

}  // namespace tacho::top
