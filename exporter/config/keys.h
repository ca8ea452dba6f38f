#pragma once

#include "config/type.h"

namespace tacho::config {

/// The description of the configuration: every key with its type, range, default and document. Reading a file, its
/// suggestions, the JSON schema and config/tacho.yaml derive from it; a new key is a member in config.h and an entry
/// here.
const Type<Config>& config_type();

}  // namespace tacho::config
