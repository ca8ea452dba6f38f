#pragma once

#include <memory>

#include "base/result.h"
#include "web/in_flight.h"
#include "web/live_config.h"
#include "web/site.h"
#include "web/tls.h"

struct mg_connection;
struct mg_context;

namespace tacho::web {

/// civetweb: worker threads that read one request from a connection they are given, have the site answer it and send
/// that. Nothing else of civetweb is reachable: all requests and errors go through here.
class Engine {
 public:
  /// The other parts must outlive the engine. Call with the signals blocked that the threads must not take.
  static Result<std::unique_ptr<Engine>> start(unsigned workers, Site& site, const LiveConfig& config,
                                               InFlight& in_flight);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// Waits until all workers have ended.
  ~Engine();

  /// Gives a connected socket, which `in_flight` knows already, to a free worker; false: not taken.
  bool adopt(int socket, bool tls);

  /// New TLS connections use this context.
  void use(SslContext context);

 private:
  struct Callbacks;

  Engine(Site& site, const LiveConfig& config, InFlight& in_flight)
      : site_(site), config_(config), in_flight_(in_flight) {}

  void serve(mg_connection* connection);
  void send(mg_connection* connection, Response response, bool head_only, std::optional<std::string> accept_encoding);

  Site& site_;
  const LiveConfig& config_;
  InFlight& in_flight_;
  mg_context* context_ = nullptr;
};

}  // namespace tacho::web
