#pragma once

#include <optional>
#include <vector>

#include "web/basic_auth.h"
#include "web/host.h"
#include "web/live_config.h"
#include "web/message.h"

namespace tacho::web {

/// The result for a request: an answer, a route to call, or a password to check first.
struct Verdict {
  std::optional<Response> response = {};
  const Route* route = nullptr;
};

/// Decides which requests are permitted, and which route answers them. Thread-safe.
class Site {
 public:
  explicit Site(std::vector<Route> routes, OwnNames names = OwnNames::of_this_machine())
      : routes_(std::move(routes)), names_(std::move(names)) {}

  /// Checks the rate limit, then the requested host name, then authentication, path and method; then calls the handler
  /// if it is an immediate one. Takes no time. Neither a response nor a route: the password has to be checked.
  /// @param regular  the request's source, if that is one of Regulars; else empty
  Verdict judge(Request& request, const Policy& policy, const std::string& regular);
  /// The same if the password has to be checked: takes its time.
  Verdict check_password(Request& request, const Policy& policy);

  /// Calls a route's handler. Lets no exception of it pass.
  static Response call(const Route& route, const Request& request);

 private:
  Verdict route(const Request& request) const;
  Verdict judge(Request& request, const Policy& policy, Login login) const;

  const std::vector<Route> routes_;
  const OwnNames names_;
  BasicAuth auth_;
};

/// A text response with the meaning of the status.
Response error_response(int status);

}  // namespace tacho::web
