#pragma once

#include <string>
#include <vector>

#include "config/config.h"

namespace tacho::config {

template <class T>
struct Type;  // config/type.h

/// The description of the configuration: every key with its type, range, default and document. Reading a file, its
/// suggestions, the JSON schema and config/tacho.yaml derive from it; a new key is a member in config.h and an entry
/// here.
const Type<Config>& config_type();

/// Restores in `fresh`, which was read while the program runs with `running`, every value that takes effect at a start
/// only. Afterwards `fresh` is what the program runs with, once the rest is applied. @return the dotted names of the
/// restored keys
std::vector<std::string> hold_back(const Config& running, Config& fresh);

}  // namespace tacho::config
