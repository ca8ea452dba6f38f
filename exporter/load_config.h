#pragma once

#include <string>

#include "config/load.h"

namespace tacho {

/// config::load_file(), with warnings of what only the whole program can judge.
config::Loaded load_config(const std::string& path);

}  // namespace tacho
