#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/liveness.h"
#include "base/result.h"
#include "web/counters.h"
#include "web/files.h"
#include "web/host.h"
#include "web/listener.h"
#include "web/message.h"
#include "web/regulars.h"

namespace tacho::web {

struct Options {
  std::vector<std::string> listen_addresses;   ///< as in ListenAddress::parse
  std::optional<std::string> web_config_file;  ///< Prometheus' format: TLS, client certificates, users, headers, rate
  const Files* files = nullptr;                ///< where that is read; none: on disk
  std::optional<OwnNames> own_names = {};      ///< of this machine; none: looked up at the start
  GateCounters* counters = nullptr;            ///< where to count on; none: the server's own
  RegularsMemory* regulars = nullptr;          ///< those that a server before met; none: all are strangers
};

/// Connections since the start, and those that got no (whole) answer; each only grows.
struct Statistics {
  std::uint64_t accepted = 0;   ///< all connections
  std::uint64_t timed_out = 0;  ///< no whole request in time
  std::uint64_t displaced = 0;  ///< closed before the answer: too many others
  std::uint64_t cut_off = 0;    ///< the client took too little of the answer
  std::uint64_t refused = 0;    ///< answered 503 or 429: too many requests in line, or in a time
  std::uint64_t open = 0;       ///< connections now
};

/// Sockets that listen on the addresses. Errors name the address and the remedy.
Result<std::vector<Listener>> open_listeners(const std::vector<std::string>& addresses);

/// An HTTP/1.1 server, one request a connection. gate.h describes its limits, and how a slow or hostile client is kept
/// from delaying others. The web configuration is read again when its files change.
class Server {
 public:
  /// Listens, starts the threads (all signals blocked in them) and answers. Ignores SIGPIPE for the whole process.
  /// Errors (bad address, port in use, bad web configuration or certificate) name the place and the remedy.
  /// @param liveness knows the requests under way
  static Result<std::unique_ptr<Server>> start(const Options& options, std::vector<Route> routes, Liveness& liveness);
  /// The same on sockets that listen already, instead of the options' addresses.
  static Result<std::unique_ptr<Server>> start(const Options& options, std::vector<Listener> listeners,
                                               std::vector<Route> routes, Liveness& liveness);

  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Frees the ports at once, lets answers go out for half a second, waits for handlers that run.
  ~Server();

  /// The addresses that are listened on, in the order of the options, with the ports the kernel chose: "[::]:9100",
  /// "unix:/path".
  [[nodiscard]] std::vector<std::string> addresses() const;
  [[nodiscard]] Statistics statistics() const;

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace tacho::web
