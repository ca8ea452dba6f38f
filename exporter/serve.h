#pragma once

#include <functional>
#include <vector>

#include "cli.h"
#include "config/config.h"
#include "web/message.h"

namespace tacho {

/// Routes of the web process besides tacho's own, for tests of what that process can do.
using MoreRoutes = std::function<std::vector<web::Route>()>;

/// Observes and serves until SIGINT or SIGTERM. @return exit code
int serve(const Cli& cli, const config::Config& config, MoreRoutes more_routes = {});

/// Observes for a little more than a second and prints one exposition. @return exit code
int once(const Cli& cli, const config::Config& config);

/// Loads everything, attaches nothing, prints hooks, targets and numbers of series. @return exit code
int plan(const Cli& cli, const config::Config& config);

/// Requests /-/healthy from the server on the first listen address, as a container's health check does. @return exit
/// code
int health(const Cli& cli);

}  // namespace tacho
