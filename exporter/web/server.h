#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "web/message.h"

namespace tacho::web {

struct Options {
  std::vector<std::string> listen_addresses;   ///< as in ListenAddress::parse
  std::optional<std::string> web_config_file;  ///< Prometheus' format: TLS, client certificates, users, headers, rate
};

/// Connections since the start that got no (whole) answer; each only grows.
struct Statistics {
  std::uint64_t accepted = 0;   ///< all connections
  std::uint64_t timed_out = 0;  ///< no whole request in time
  std::uint64_t displaced = 0;  ///< closed while waiting: too many others came after it
  std::uint64_t cut_off = 0;    ///< the client was too slow to read the response, or to shake hands
};

/// An HTTP/1.1 server on civetweb, one request a connection. What is bounded, and how a slow or hostile client is kept
/// from delaying others, is said in gate.h; the web configuration is read again when its files change.
class Server {
 public:
  /// Listens, starts the threads (all signals blocked in them) and answers. Ignores SIGPIPE for the whole process.
  /// Errors (bad address, port in use, bad web configuration or certificate) name the place and the remedy.
  static Result<std::unique_ptr<Server>> start(const Options& options, std::vector<Route> routes);

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Frees the ports at once, lets running requests end for half a second, then cuts them off.
  ~Server();

  /// What is listened on, in the order of the options, with the ports the kernel chose: "[::]:9100", "unix:/path".
  [[nodiscard]] std::vector<std::string> addresses() const;
  /// Whether clients must speak HTTPS.
  [[nodiscard]] bool tls() const;
  [[nodiscard]] Statistics statistics() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace tacho::web
