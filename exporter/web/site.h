#pragma once

#include <optional>
#include <vector>

#include "web/basic_auth.h"
#include "web/live_config.h"
#include "web/message.h"

namespace tacho::web {

/// What becomes of a request: an answer, a route to be called, or a password to be checked first.
struct Verdict {
  std::optional<Response> response = {};
  const Route* route = nullptr;
};

/// Who may ask for what, and who answers. Thread-safe.
class Site {
 public:
  explicit Site(std::vector<Route> routes) : routes_(std::move(routes)) {}

  /// Rate limit, then the name that it is asked by, then authentication, then path, then method, then the handler if it
  /// is an immediate one. Takes no time. Neither a response nor a route: the password has to be checked.
  Verdict judge(Request& request, const Policy& policy);
  /// The same where the password has to be checked: takes its time.
  Verdict check_password(Request& request, const Policy& policy);

  /// Calls a route's handler. Never throws what a handler throws.
  static Response call(const Route& route, const Request& request);

 private:
  Verdict route(const Request& request) const;
  Verdict judge(Request& request, const Policy& policy, Login login) const;

  const std::vector<Route> routes_;
  BasicAuth auth_;
};

/// A text response that says what the status means.
Response error_response(int status);

}  // namespace tacho::web
