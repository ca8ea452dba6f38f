#pragma once

#include <string>

namespace tacho::config {

/// JSON Schema (draft-07) of the configuration file, for editors; committed as config/tacho.schema.json. It is weaker
/// than load_text: ranges of durations and equal target names are beyond it.
std::string json_schema();

/// A configuration file of all defaults in which every key is explained; committed as config/tacho.yaml.
std::string reference_yaml();

}  // namespace tacho::config
