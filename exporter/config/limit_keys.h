#pragma once

#include "config/config.h"
#include "config/type.h"

namespace tacho::config {

/// The keys below `limits`.
Type<Limits> limit_keys();

}  // namespace tacho::config
