#pragma once

#include <string>

#include "config/load.h"

namespace tacho {

/// config::load_file(), with warnings that need the whole program to be judged.
config::Loaded load_config(const std::string& path);

}  // namespace tacho
