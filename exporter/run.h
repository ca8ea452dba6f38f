#pragma once

#include "serve.h"

namespace tacho {

/// The whole program: reads the command line and runs its command. @return exit code
/// @param more_routes as serve()
int run_program(int argc, char** argv, MoreRoutes more_routes = {});

}  // namespace tacho
