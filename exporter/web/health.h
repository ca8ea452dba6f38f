#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "web/listener.h"

namespace tacho::web {

/// Asks who listens on `address` of this machine for /-/healthy, by TLS if `tls`; its certificate is not examined. Well
/// is who answers 200, or 401: then somebody serves and wants a password. Errors name the address and what came
/// instead. `patience` bounds connecting, and each wait for the answer, in whole seconds.
Result<void> ask_health(const ListenAddress& address, bool tls, std::chrono::seconds patience);

}  // namespace tacho::web
