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
  bool lifecycle = false;  ///< whoever can connect may reload
  /// What hangs, if anything does: "the main loop (sampling) is stuck for 12 s". Waits for nobody.
  std::function<std::optional<std::string>()> stuck;
  /// Why no request can be counted; empty if they can.
  std::string blindness;
};

/// Whether the request may reload: not from a page of a browser; over the network only if `lifecycle`, or by who is
/// authenticated. Otherwise why not.
std::optional<std::string> why_not_reload(const web::Request& request, bool lifecycle);

/// The routes of `tacho serve`: everything that the network may ask for. Knows of who counts only how to ask it.
std::vector<web::Route> endpoints(const EndpointContext& context);

}  // namespace tacho
