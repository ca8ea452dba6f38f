#pragma once

#include "serve.h"

namespace tacho {

/// All of the program: reads the command line and does what it says. @return exit code
/// @param more_routes as serve()
int run_program(int argc, char** argv, MoreRoutes more_routes = {});

}  // namespace tacho
