#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app.h"
#include "base/liveness.h"
#include "reload.h"
#include "web/message.h"

namespace tacho {

/// What the endpoints need; the app outlives the server that calls them.
struct EndpointContext {
  App* app = nullptr;
  std::string telemetry_path;
  bool lifecycle = false;  ///< whoever can connect may reload
  /// Reloads on the thread that owns the app, and waits for it.
  std::function<ReloadQueue::Outcome()> reload;
  const Liveness* liveness = nullptr;
};

/// Whether the request may reload: not from a page of a browser; over the network only if `lifecycle`, or by who is
/// authenticated. Otherwise why not.
std::optional<std::string> why_not_reload(const web::Request& request, bool lifecycle);

/// The routes of `tacho serve`.
std::vector<web::Route> endpoints(const EndpointContext& context);

}  // namespace tacho
