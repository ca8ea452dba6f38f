#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "boundary/answer.h"
#include "web/message.h"

namespace tacho {

/// What the endpoints need; the collector outlives the server that calls them.
struct EndpointContext {
  boundary::Collector* collector = nullptr;
  std::string telemetry_path;
  bool lifecycle = false;  ///< every client may reload
  /// The task that is stuck, if there is one: "the main loop (sampling) is stuck for 12 s". Never waits.
  std::function<std::optional<std::string>()> stuck;
  /// Why no request can be counted at all; empty if requests can be counted.
  std::string blindness;
};

/// Why the request may not reload; nothing if it may. A page of a browser never may. Over the network only
/// authenticated clients may, or all of them if `lifecycle`.
std::optional<std::string> why_not_reload(const web::Request& request, bool lifecycle);

/// The routes of `tacho serve`: everything that the network may ask for. They know of the collector only how to ask it.
std::vector<web::Route> endpoints(const EndpointContext& context);

}  // namespace tacho
