#pragma once

#include <cstdint>

#include "fuzz/life.h"

namespace tacho::fuzz {

/// The life of a seed, the same on every machine.
Life generate(std::uint64_t seed);

}  // namespace tacho::fuzz
