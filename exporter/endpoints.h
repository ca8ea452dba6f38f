#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app.h"
#include "base/result.h"
#include "web/message.h"

namespace tacho {

/// What the endpoints need; the app outlives the server that calls them.
struct EndpointContext {
  App* app = nullptr;
  std::string telemetry_path;
  /// Reloads on the thread that owns the app, and waits for it.
  std::function<Result<void>()> reload;
};

/// The routes of `tacho serve`.
std::vector<web::Route> endpoints(const EndpointContext& context);

}  // namespace tacho
