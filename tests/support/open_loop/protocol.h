#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tacho::support {

/// What came back so far.
enum class Reply { kIncomplete, kComplete, kRefused };

/// One connection's side of a protocol in which a reply follows a request.
class Protocol {
 public:
  Protocol() = default;
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;
  virtual ~Protocol() = default;

  /// What has to be said before the first request, on a blocking socket.
  virtual Result<void> log_in(int /*socket*/) { return {}; }

  /// The bytes of a request. A "{}" in the text it was made with becomes `number`.
  [[nodiscard]] virtual std::string request(std::uint64_t number) = 0;

  /// Takes what was received; once it has said kComplete or kRefused it is ready for the next reply.
  virtual Reply receive(std::string_view bytes) = 0;
};

/// Makes the protocol object of one connection.
using MakeProtocol = std::function<std::unique_ptr<Protocol>()>;

/// Replaces the first "{}" in `text` by the number.
std::string numbered(const std::string& text, std::uint64_t number);

/// HTTP/1.1 GET of a path (RFC 9112): replies with a length or in chunks; any status but 2xx is a refusal.
std::unique_ptr<Protocol> make_http(const std::string& path, const std::string& headers);
/// A Redis command, its words apart by spaces (RESP2): replies of any type; an error is a refusal.
std::unique_ptr<Protocol> make_redis(const std::string& command);
/// A memcached command whose reply ends with END.
std::unique_ptr<Protocol> make_memcached(const std::string& command);
/// As many bytes back as went out.
std::unique_ptr<Protocol> make_echo(const std::string& message);
/// PostgreSQL's simple query protocol (version 3.0), as `postgres` without a password.
std::unique_ptr<Protocol> make_postgres(const std::string& query);
/// MySQL's COM_QUERY, as `root` without a password.
std::unique_ptr<Protocol> make_mysql(const std::string& query);
/// A DNS question for an A record over UDP, DNSSEC records wanted (RFC 1035, 6891, 4035).
std::unique_ptr<Protocol> make_dns(const std::string& name);

}  // namespace tacho::support
