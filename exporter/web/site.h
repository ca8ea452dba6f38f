#pragma once

#include <vector>

#include "web/basic_auth.h"
#include "web/live_config.h"
#include "web/message.h"

namespace tacho::web {

/// Who may ask for what, and who answers. Thread-safe.
class Site {
 public:
  explicit Site(std::vector<Route> routes) : routes_(std::move(routes)) {}

  /// Rate limit, then authentication, then path, then method, then the handler. Never throws what a handler throws.
  Response answer(const Request& request, const Policy& policy);

 private:
  Response route(const Request& request) const;

  const std::vector<Route> routes_;
  BasicAuth auth_;
};

/// A text response that says what the status means.
Response error_response(int status);

}  // namespace tacho::web
