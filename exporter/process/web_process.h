#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "process/shared_state.h"
#include "web/host.h"
#include "web/message.h"

namespace tacho::process {

/// Given to every web process from its beginning; made before the first fork.
struct WebSide {
  std::string telemetry_path;
  bool lifecycle = false;
  std::string web_config_file;  ///< empty: none
  web::OwnNames own_names;      ///< of this machine
  SharedState* shared = nullptr;
  /// More routes, for tests of what a web process can do.
  std::function<std::vector<web::Route>()> more_routes;
};

/// The process that serves the network: waits for its sockets and configuration, serves until the other end of
/// `control` is closed, ends. @return exit code
int run_web(WebSide side, UniqueFd control);

}  // namespace tacho::process
